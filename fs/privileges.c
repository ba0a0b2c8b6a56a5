/*
 * privileges.c - capabilities, by libcap-ng.
 */
#include "privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

/* In a container root may not have it to begin with. */
static void keep(unsigned capability, bool had, capng_type_t sets) {
    if (had)
        (void)capng_update(CAPNG_ADD, sets, capability);
}

int privileges_drop(void) {
    const capng_type_t in_effect = (capng_type_t)(CAPNG_EFFECTIVE | CAPNG_PERMITTED);
    bool overrides, traces, unmounts, bounds;

    if (geteuid() != 0)
        return 0;
    if (capng_get_caps_process() != 0)
        return -EPERM;
    overrides = capng_have_capability(CAPNG_PERMITTED, CAP_DAC_OVERRIDE);
    traces = capng_have_capability(CAPNG_PERMITTED, CAP_SYS_PTRACE);
    unmounts = capng_have_capability(CAPNG_PERMITTED, CAP_SYS_ADMIN);
    bounds = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    capng_clear(CAPNG_SELECT_BOTH);
    keep(CAP_DAC_OVERRIDE, overrides, in_effect);
    keep(CAP_SYS_PTRACE, traces, in_effect);
    keep(CAP_SYS_ADMIN, unmounts, CAPNG_PERMITTED);
    if (capng_apply(bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) != 0)
        return -EPERM;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

void privileges_unmount(void) {
    if (geteuid() != 0 || capng_get_caps_process() != 0 || !capng_have_capability(CAPNG_PERMITTED, CAP_SYS_ADMIN))
        return;
    if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SYS_ADMIN) == 0)
        (void)capng_apply(CAPNG_SELECT_CAPS);
}
