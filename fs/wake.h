/*
 * wake.h - waking the loop from another thread, through an eventfd. It cannot fail: the counter is far from
 * overflowing.
 */
#ifndef WAKE_H
#define WAKE_H

#include <stdint.h>
#include <unistd.h>

static inline void wake_up(int event) {
    uint64_t one = 1;

    if (write(event, &one, sizeof one) < 0)
        return;
}

static inline void wake_clear(int event) {
    uint64_t count;

    if (read(event, &count, sizeof count) < 0)
        return;
}

#endif
