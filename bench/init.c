/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of the guest that bench/launch boots in bare QEMU: says that it runs, says that it ends,
 * switches the machine off. What remains is the cost of the machine itself. */
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        abort();
}

int main(void)
{
    say("bench: first instruction\n");
    say("bench: last instruction\n");
    reboot(RB_POWER_OFF);
    return 1;
}
