/* SPDX-License-Identifier: Apache-2.0 */
/* berth. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return berth_cli_main(argc, argv, NULL);
}
