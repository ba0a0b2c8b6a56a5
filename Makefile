# spoolfs: `make` builds, `make demo` shows, `make check` tests everything. All that is built goes below build/.
#
#   SAN=address, SAN=thread   build with sanitizers, in build/san-... beside the ordinary build
#   CI=true                   warnings are errors, skipped tests are failures
#   V=1                       shows the commands
#   DESTDIR=, PREFIX=         where `make install` puts things

VERSION = 0.1.0

PREFIX = /usr/local
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man

Q = $(if $(V),,@echo "  $@" && )

B   = build$(if $(SAN),/san-$(SAN))
GEN = build/gen

# --- flags -----------------------------------------------------------------------------------------------------------

# Warnings are never errors with sanitizers: what they add confuses the compiler.
CC       = gcc
OPTIMISE = $(if $(SAN),-O1,-O2 -D_FORTIFY_SOURCE=2)
WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror=implicit \
           $(if $(SAN),,$(if $(filter true,$(CI)),-Werror))
SAN_address = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_thread  = -fsanitize=thread -fno-omit-frame-pointer
CFLAGS   = -g $(OPTIMISE)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DSPOOL_VERSION='"$(VERSION)"' $(WARNINGS) -fstack-protector-strong -pthread \
             $(CFLAGS) $(SAN_$(SAN)) $(FLAGS_$(firstword $(subst /, ,$<)))
ALL_LDFLAGS = -pthread $(SAN_$(SAN)) $(LDFLAGS)

# What each layer may see, by its folder. That fs and tools include nothing of core but spool.h is for `make check-layers`.
FLAGS_core  = -Icore -I$(GEN)
FLAGS_build = $(FLAGS_core)
FLAGS_fs    = -Icore $(shell pkg-config --cflags fuse3)
FLAGS_tools = -Icore
FLAGS_tests = $(FLAGS_core) -Ifs -Itools -Itests/lib $(shell pkg-config --cflags fuse3)

LIBS      = $(shell pkg-config --libs sqlite3 libxxhash)
FUSE_LIBS = $(shell pkg-config --libs fuse3 libcap-ng)

# --- what there is ---------------------------------------------------------------------------------------------------

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))

GENERATED = $(GEN)/queries.h $(GEN)/queries.c $(GEN)/schema.c
CORE  = $(call objects,core/*.c) $(B)/gen/queries.o $(B)/gen/schema.o
FS    = $(call objects,fs/*.c)
TOOLS = $(call objects,tools/*.c)

# tests/*/test_*.c are unit tests; tests/lib/*.c is linked into each of them. Any other C file in tests/ is a program of
# its own that the tests or benchmarks in the same folder run. A test in tests/fs or tests/tools may look inside its layer.
TEST_LIB   = $(call objects,tests/lib/*.c)
UNIT_TESTS = $(patsubst %.c,$(B)/%,$(wildcard tests/*/test_*.c))
HELPERS    = $(filter-out $(UNIT_TESTS) $(TEST_LIB:.o=),$(patsubst %.c,$(B)/%,$(wildcard tests/*/*.c)))
INSIDE_core  =
INSIDE_fs    = $(filter-out $(B)/fs/main.o,$(FS))
INSIDE_tools = $(filter-out $(B)/tools/spool.o,$(TOOLS))

.PHONY: all tests install uninstall check check-layers lint format demo bench clean
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:

all: $(B)/libspool.a $(if $(FS),$(B)/spoolfs) $(if $(TOOLS),$(B)/spool)
tests: all $(UNIT_TESTS) $(HELPERS)

$(GEN)/queries.h $(GEN)/queries.c &: core/queries.sql core/sql.sh
	@mkdir -p $(GEN)
	$(Q)core/sql.sh queries $< $(GEN)/queries.h $(GEN)/queries.c

$(GEN)/schema.c: core/schema.sql core/sql.sh
	@mkdir -p $(GEN)
	$(Q)core/sql.sh schema $< $@

$(B)/gen/%.o: $(GEN)/%.c Makefile | $(GENERATED)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: %.c Makefile | $(GENERATED)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libspool.a: $(CORE)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/spoolfs: $(FS) $(B)/libspool.a
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(FUSE_LIBS) $(LIBS)

$(B)/spool: $(TOOLS) $(B)/libspool.a
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(LIBS)

$(UNIT_TESTS): $(B)/tests/%: $(B)/tests/%.o $(TEST_LIB) $$(INSIDE_$$(firstword $$(subst /, ,$$*))) $(B)/libspool.a
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(if $(findstring tests/fs/,$@),$(FUSE_LIBS)) $(LIBS) -lcmocka

$(HELPERS): %: %.o
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS)

-include $(wildcard $(B)/*/*.d $(B)/tests/*/*.d)

# --- what to do with it ----------------------------------------------------------------------------------------------

check: # ONLY="core/ lint": the jobs whose names begin like this
	tests/lib/check $(ONLY)

check-layers:
	tests/lib/check layers

lint:
	tests/lib/check lint layers

format:
	clang-format -i $(wildcard core/*.[ch] fs/*.[ch] tools/*.[ch] tests/*/*.[ch])

demo:
	@tests/lib/install-packages build run
	@$(MAKE) --no-print-directory -s all
	@docs/demo.sh

bench:
	@tests/lib/install-packages build run bench
	@$(MAKE) --no-print-directory -s all $(filter $(B)/tests/bench/%,$(HELPERS))
	@tests/bench/run

# /etc/fstab needs nothing but spoolfs on the PATH: for the type fuse.spoolfs mount(8) calls mount.fuse3, which drops the
# options that are not for us (noauto, nofail, user, x-...) and runs `spoolfs DATABASE MOUNTPOINT -o ...`. So there is no
# /sbin/mount.spoolfs: it would have to understand mount's own switches, of which -f means something else to us.
install: all
	install -d $(DESTDIR)$(BINDIR)
	install $(B)/spoolfs $(B)/spool $(DESTDIR)$(BINDIR)
	for page in $(wildcard docs/*.[1-9]); do \
	    install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page#docs/} || exit; done

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/spoolfs $(DESTDIR)$(BINDIR)/spool
	for page in $(wildcard docs/*.[1-9]); do rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page#docs/}; done

clean:
	rm -rf build
