/* writer.h - what open.c and writer.c share: a writer, and how it gets to the draft that its bytes belong to. */
#ifndef SPOOL_WRITER_H
#define SPOOL_WRITER_H

#include "engine.h"

struct spool_writer {
    struct spool *spool;
    int64_t serial;
    int64_t file;
    bool append;
    struct spool_caller caller;
    enum spool_state opened_as;
    int64_t claim;       /* the lease it was opened under */
    bool fresh;          /* opened to write the file from its start */
    struct draft *draft; /* NULL until something is written */
};

int spool__new_writer(struct spool *spool, int64_t file, bool append, struct spool_caller caller,
                      const struct message *message, struct spool_writer **out);
int spool__drop_writer(struct spool_writer *writer, int rc);
int spool__join_draft(struct spool_writer *writer, struct draft *draft);
int spool__begin_and_join(struct spool_writer *writer, enum draft_kind kind, int64_t number,
                          const struct message *from);
int spool__begin_beside(struct spool_writer *writer, enum draft_kind kind, const struct message *message);
int spool__reopen(struct spool_writer *writer, const struct message *old, bool truncate);
int spool__begin_checkpoint(struct spool_writer *writer, const struct message *message, bool truncate);
void spool__mark_begun(struct draft *draft);
enum on_conflict spool__conflict_rule(struct spool *spool, int64_t queue);
int spool__truncate_shared(struct spool_writer *writer, struct draft *draft);

#endif
