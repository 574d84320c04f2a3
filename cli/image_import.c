/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way to the program that imports images. What it needs to read archives and to write file systems takes longer to
 * load than most commands take, and no other command needs it. */
#include "config.h"

#include "cli/cli.h"
#include "common/error.h"

#include <errno.h>
#include <unistd.h>

#define PROGRAM "berth-image-import"

/* Beside this program, as in a build tree, or where it is installed. (transfer full) */
static char *find_program(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *directory = g_path_get_dirname(self != NULL ? self : "");
    g_autofree char *beside = g_build_filename(directory, PROGRAM, NULL);
    if (self != NULL && access(beside, X_OK) == 0)
        return g_steal_pointer(&beside);
    return g_build_filename(BERTH_LIBEXECDIR, PROGRAM, NULL);
}

gboolean berth_cli_image_import(BerthCli *cli, int argc, char **argv, int *out_status,
                                GError **error)
{
    g_autofree char *program = find_program();
    g_autoptr(GPtrArray) arguments = g_ptr_array_new();
    if (cli->image_import != NULL)
        return cli->image_import(cli, argc, argv, out_status, error);
    g_ptr_array_add(arguments, (char *)"berth");
    g_ptr_array_add(arguments, (char *)"--socket");
    g_ptr_array_add(arguments, cli->socket_path);
    g_ptr_array_add(arguments, (char *)"image");
    g_ptr_array_add(arguments, (char *)"import");
    for (int i = 1; i < argc; i++)
        g_ptr_array_add(arguments, argv[i]);
    g_ptr_array_add(arguments, NULL);
    execv(program, (char **)arguments->pdata);
    berth_set_error_errno(error, errno,
                          "cannot run %s, which imports images: install all of Berth's programs",
                          program);
    return FALSE;
}
