/* SPDX-License-Identifier: Apache-2.0 */
/* berth-image-import: berth with all that it takes to import an image. */
#include "cli/image.h"

int main(int argc, char **argv)
{
    return berth_cli_main(argc, argv, berth_cli_image_build);
}
