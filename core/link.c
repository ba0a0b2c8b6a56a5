/* link.c - link(staged, final): publishes a copy of a staged file, as it is now. */
#include "engine.h"

#include <errno.h>
#include <string.h>

/* What is in memory of a file that is being written. */
static int copy_bytes(struct spool *spool, const struct content *content, struct content_summary *to) {
    struct content_summary copy;
    content_summary(content, &copy);
    copy.payload = 0;
    if (copy.size > 0) {
        copy.payload = spool__number(spool);
        if (copy.payload < 0)
            return (int)copy.payload;
        int rc = spool__run(spool, Q_payload_put, db_int(copy.payload), db_bytes(content->bytes, (size_t)copy.size));
        if (rc)
            return rc;
    }
    *to = copy;
    return 0;
}

static int copy_source(struct spool *spool, const struct message *source, struct content_summary *to) {
    struct draft *draft = spool__draft_of(spool, source->number, WRITES_NEW);
    if (!draft || !draft->state.dirty)
        return spool__copy_content(spool, &source->content, to);
    if (spool__draft_error(draft))
        return spool__draft_error(draft);
    return content_blocks(&draft->content) ? -ETXTBSY : copy_bytes(spool, &draft->content, to);
}

static int may_link(struct spool *spool, const struct message *source, int64_t to, const char *name) {
    struct directory *directory;
    struct spool_entry taken;
    bool from_staged = false, to_staged = true;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = spool__directory(spool, to, &directory);
    if (!rc && directory->kind == SPOOL_QUEUE)
        rc = spool__is_staged(spool, to, name, &to_staged);
    if (!rc && (source->state == SPOOL_STAGED || source->state == SPOOL_OPEN))
        rc = spool__is_staged(spool, source->directory, source->name, &from_staged);
    if (!rc && (!from_staged || to_staged))
        rc = -EPERM;
    if (rc)
        return rc;
    rc = spool_lookup(spool, to, name, &taken);
    if (rc == 0)
        spool__promise(spool);
    return rc == 0 ? -EEXIST : rc == -ENOENT ? spool__has_room(spool, to, source->content.size, true) : rc;
}

int spool_link(struct spool *spool, int64_t number, int64_t to, const char *name, struct spool_caller caller,
               struct spool_entry *entry) {
    struct message source, copy, open;
    int64_t place = 0;
    int rc = spool__message(spool, number, &source);
    if (!rc)
        rc = may_link(spool, &source, to, name);
    if (!rc)
        rc = spool__take_name(spool, to, name, 0, &place);
    if (!rc)
        rc = spool__change(spool);
    copy = source;
    if (!rc)
        rc = copy_source(spool, &source, &copy.content);
    int64_t copy_number = rc ? rc : spool__number(spool);
    if (copy_number < 0)
        return (int)copy_number;
    copy.number = copy.place = copy_number;
    copy.state = SPOOL_OPEN;
    copy.queue = copy.directory = to;
    copy.uid = caller.uid;
    copy.gid = caller.gid;
    memcpy(copy.name, name, strlen(name) + 1);
    copy.due_ns = 0;
    rc = spool__insert_message(spool, &copy);
    open = copy;
    if (!rc)
        rc = spool__publish(spool, &open, &copy, place, false);
    if (!rc) {
        spool__promise(spool);
        spool__describe_message(spool, &copy, entry);
    }
    return rc;
}
