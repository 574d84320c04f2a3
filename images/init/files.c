/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the files of a task until the command is started: their order, their sizes, where they go.
 * It does not know the channel. Invariants: files are written strictly in order and without gaps;
 * a file counts as complete only when it has its whole size, its owner and its mode; a name that
 * exists is replaced, never written through. */
#include "images/init/files.h"

#include "images/init/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *path;
    uint32_t mode;
    uint64_t size;
    bool is_private; /* of the run directory: the directories above it are root's */
} Wanted;

struct Files {
    char *work_directory;
    char *environment_path; /* NULL: none */
    char *script_path;      /* NULL: none */
    uid_t uid;
    gid_t gid;
    Wanted *wanted;
    uint32_t total;
    uint32_t complete;
    uint64_t bytes; /* of the next file */
    int fd;         /* the next file, -1 before its first byte */
};

/* The script keeps its name, so that $0 tells the user something. */
static const char *script_name(const Berth__GuestTask *task)
{
    const char *path = task->n_command > 0 ? task->command[0] : "";
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    bool usable = name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
                  strlen(name) <= NAME_MAX;

    return usable ? name : "script";
}

static bool list_wanted(Files *files, const Berth__GuestTask *task, const char *run_directory,
                        const char *work_directory)
{
    files->wanted = calloc(task->n_inputs + 2, sizeof *files->wanted);
    files->work_directory = strdup(work_directory);
    if (files->wanted == NULL || files->work_directory == NULL)
        return false;
    if (task->environment != NULL) {
        if (asprintf(&files->environment_path, "%s/environment", run_directory) < 0)
            return false;
        files->wanted[files->total++] =
            (Wanted){files->environment_path, 0600, task->environment->size_bytes, true};
    }
    if (task->script != NULL) {
        if (asprintf(&files->script_path, "%s/script/%s", run_directory, script_name(task)) < 0)
            return false;
        files->wanted[files->total++] =
            (Wanted){files->script_path, 0755, task->script->size_bytes, true};
    }
    for (size_t i = 0; i < task->n_inputs; i++) {
        const Berth__GuestFile *input = task->inputs[i];

        files->wanted[files->total++] =
            (Wanted){input->path, input->mode & 07777,
                     input->blob != NULL ? input->blob->size_bytes : 0, false};
    }
    return true;
}

static void fault_set_write(Fault *fault, const Wanted *wanted, int err)
{
    if (err != ENOSPC && err != EDQUOT) {
        fault_set_errno(fault, err, "cannot write '%s' in the guest", wanted->path);
        return;
    }
    fault_set(fault, "no space in the guest for '%s' of %" PRIu64 " bytes", wanted->path,
              wanted->size);
    if (fault != NULL)
        fault->disk_full = true;
}

/* Makes the next file anew, without its final mode, so that nobody takes half of it for the whole. */
static bool open_next(Files *files, Fault *fault)
{
    const Wanted *wanted = &files->wanted[files->complete];
    uid_t uid = wanted->is_private ? geteuid() : files->uid;
    gid_t gid = wanted->is_private ? getegid() : files->gid;
    const char *name;
    int directory;

    directory = path_open_parent(files->work_directory, wanted->path, uid, gid, &name, fault);
    if (directory < 0)
        return false;
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
        files->fd =
            openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (files->fd < 0)
        fault_set_write(fault, wanted, errno);
    int err = errno;
    close(directory);
    errno = err;
    return files->fd >= 0;
}

/* The next file has all its bytes: gives it owner and mode and goes on. */
static bool complete_next(Files *files, Fault *fault)
{
    const Wanted *wanted = &files->wanted[files->complete];
    bool ok =
        fchown(files->fd, files->uid, files->gid) == 0 && fchmod(files->fd, wanted->mode) == 0;

    ok = close(files->fd) == 0 && ok;
    files->fd = -1;
    if (!ok) {
        fault_set_write(fault, wanted, errno);
        return false;
    }
    files->complete++;
    files->bytes = 0;
    return true;
}

static bool complete_empty(Files *files, Fault *fault)
{
    while (files->complete < files->total && files->wanted[files->complete].size == 0)
        if (!open_next(files, fault) || !complete_next(files, fault))
            return false;
    return true;
}

Files *files_new(const Berth__GuestTask *task, const char *run_directory,
                 const char *work_directory, Fault *fault)
{
    Files *files = calloc(1, sizeof *files);

    if (files == NULL || task->n_inputs > UINT32_MAX - 2) {
        fault_set(fault, "not enough memory in the guest for its list of files");
        free(files);
        return NULL;
    }
    files->uid = task->uid;
    files->gid = task->gid;
    files->fd = -1;
    if (!list_wanted(files, task, run_directory, work_directory)) {
        fault_set(fault, "not enough memory in the guest for its list of files");
        files_free(files);
        return NULL;
    }
    if (!complete_empty(files, fault)) {
        files_free(files);
        return NULL;
    }
    return files;
}

void files_free(Files *files)
{
    if (files == NULL)
        return;
    if (files->fd >= 0)
        close(files->fd);
    free(files->wanted);
    free(files->work_directory);
    free(files->environment_path);
    free(files->script_path);
    free(files);
}

static bool write_all(int fd, const uint8_t *data, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(fd, data, length);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        data += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

FilesResult files_write(Files *files, uint32_t index, uint64_t offset, const uint8_t *data,
                        size_t length, Fault *fault)
{
    const Wanted *wanted;
    uint64_t skip;

    if (index < files->complete)
        return FILES_TAKEN;
    if (index != files->complete || index >= files->total || offset > files->bytes)
        return FILES_GAP;
    wanted = &files->wanted[index];
    skip = files->bytes - offset;
    if (skip >= length)
        return FILES_TAKEN;
    if (length - skip > wanted->size - files->bytes) {
        fault_set(fault, "the host sent more of '%s' than its %" PRIu64 " bytes", wanted->path,
                  wanted->size);
        return FILES_FAILED;
    }
    if (files->fd < 0 && !open_next(files, fault))
        return FILES_FAILED;
    if (!write_all(files->fd, data + skip, (size_t)(length - skip))) {
        fault_set_write(fault, wanted, errno);
        return FILES_FAILED;
    }
    files->bytes += length - skip;
    if (files->bytes == wanted->size &&
        (!complete_next(files, fault) || !complete_empty(files, fault)))
        return FILES_FAILED;
    return FILES_TAKEN;
}

FilesProgress files_progress(const Files *files)
{
    return (FilesProgress){files->total, files->complete, files->bytes};
}

const char *files_environment_path(const Files *files)
{
    return files->environment_path;
}

const char *files_script_path(const Files *files)
{
    return files->script_path;
}
