/* removal.c - how messages go: acknowledged, cancelled, discarded, dropped; and what is being written to them, along with them. */
#include "engine.h"

#include <errno.h>

int spool__acknowledge(struct spool *spool, const struct message *message) {
    int rc = spool__end_checkpoints(spool, message->number);
    if (rc)
        return rc;
    spool__count(spool, message->queue, COUNT_ACKNOWLEDGED, 1);
    spool__promise(spool);
    return spool__delete_message(spool, message);
}

int spool__cancel(struct spool *spool, const struct message *message) {
    int rc = spool__drop_drafts(spool, message->number);
    if (rc)
        return rc;
    if (spool__is_published(message->state))
        spool__count(spool, message->queue, COUNT_CANCELLED, 1);
    if (message->state != SPOOL_STAGED && message->state != SPOOL_OPEN)
        spool__promise(spool);
    return spool__delete_message(spool, message);
}

int spool__remove_directory(struct spool *spool, struct directory *directory) {
    int rc = directory->kind == SPOOL_QUEUE ? spool__drop_replacements(spool, directory->entry.key) : 0;
    return rc ? rc : spool__delete_directory(spool, directory);
}
