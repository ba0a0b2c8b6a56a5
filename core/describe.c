/* describe.c - how directories and messages look from outside: modes, owners, times. */
#include "engine.h"

#include <sys/stat.h>

void spool__describe_directory(struct spool *spool, const struct directory *directory, struct spool_entry *entry) {
    uint32_t type = directory->kind == SPOOL_LINK ? S_IFLNK : S_IFDIR;
    *entry = (struct spool_entry){
        .number = directory->entry.key,
        .kind = directory->kind,
        .parent = directory->parent,
        .queue = spool__queue_of(spool, directory),
        .atime_ns = directory->mtime_ns,
        .mtime_ns = directory->mtime_ns,
        .ctime_ns = directory->ctime_ns,
    };
    spool__directory_access(spool, directory, &entry->mode, &entry->uid, &entry->gid);
    entry->mode |= type;
}

/* What the classes of users get on a message: none where they may not read the queue. */
static uint32_t visible_mode(struct spool *spool, const struct message *message) {
    struct directory *queue;
    uint32_t mode = (message->mode & 0777) | 0600;
    if (message->state == SPOOL_CLAIMED_STATE)
        return 0600;
    if (spool__directory(spool, message->queue, &queue) == 0) {
        bool others_read = queue->mode & 04;
        /* The members of another group than the queue's are others to the queue. */
        bool group_reads = message->gid == queue->gid ? (queue->mode & 040) != 0 : others_read;
        mode &= (group_reads ? UINT32_C(0770) : UINT32_C(0700)) | (others_read ? UINT32_C(07) : 0);
    }
    return mode;
}

/* While it is delayed, a message's mtime says when it is due. */
static int64_t visible_mtime(const struct spool *spool, const struct message *message) {
    int64_t mtime_ns = message->mtime_ns;
    if (message->state == SPOOL_DEAD_STATE)
        return message->end_ns;
    if (message->state == SPOOL_DELAYED && message->end_boot_ns && message->end_ns > spool->now.wall_ns)
        mtime_ns = message->end_ns;
    if ((spool__is_waiting(message->state) || message->state == SPOOL_CLAIMED_STATE) &&
        message->due_ns > spool->now.wall_ns && message->due_ns > mtime_ns)
        mtime_ns = message->due_ns;
    return mtime_ns;
}

void spool__describe_message(struct spool *spool, const struct message *message, struct spool_entry *entry) {
    struct draft *draft = spool__draft_of(spool, message->number, WRITES_NEW);
    bool claimed = message->state == SPOOL_CLAIMED_STATE;
    *entry = (struct spool_entry){
        .number = message->number,
        .kind = SPOOL_MESSAGE,
        .state = message->state,
        .parent = message->directory,
        .queue = message->queue,
        .mode = S_IFREG | visible_mode(spool, message),
        .uid = claimed ? (uid_t)message->holder : message->uid,
        .gid = message->gid,
        .size_bytes = draft ? draft->content.size : message->content.size,
        .atime_ns = claimed                     ? message->end_ns
                    : message->published_ns > 0 ? message->published_ns
                                                : message->mtime_ns,
        .mtime_ns = visible_mtime(spool, message),
        .ctime_ns = message->ctime_ns,
    };
}
