# pagesim: one Makefile for the whole tree. `make help` lists the targets.
#
# Everything built lands in build/$(MODE)/, so modes never mix. Sources are found by their
# place in the tree: a new file in allocator/, workloads/, sim/ or tests/ needs no change here.

MODE    ?= release
CC      ?= gcc
AR      ?= ar
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0

VERSION := 0.1.0
# Of the version, for manual pages.
DATE    := 2026-12-01

ifeq ($(origin CC),default)
CC := gcc
endif

B := build/$(MODE)

# --- flags -------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion \
            -Wundef -Wformat=2 -Wvla
# -ffp-contract=off: fused multiply-adds would make results differ between compilers.
BASE     := -std=c17 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno $(WARNINGS) -MMD -MP

OPT_release := -O2 -g
OPT_debug   := -O0 -g3 -DKV_DEBUG=1
OPT_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DKV_DEBUG=1
OPT_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_cov     := -O0 -g --coverage -DKV_DEBUG=1
ifeq ($(OPT_$(MODE)),)
$(error MODE=$(MODE): expected release, debug, asan, tsan or cov)
endif

CFLAGS  ?=
LDFLAGS ?=
override ALL_CFLAGS  := $(BASE) $(OPT_$(MODE)) -DPAGESIM_VERSION='"$(VERSION)"' -DPAGESIM_DATE='"$(DATE)"' -I. -I$(B)/gen $(CFLAGS)
# -rdynamic: schedulers in plug-ins call functions of the program (sim/scheduler.h).
override ALL_LDFLAGS := $(OPT_$(MODE)) -rdynamic $(LDFLAGS)
# jemalloc is linked in every mode: it is the process allocator of release builds, and the
# `jemalloc` policy allocates from an arena of it. Sanitizers keep malloc for themselves.
LIBS    := -ljemalloc -ljansson -larchive -lzstd -lz -lmd -lpthread -lm

comma := ,

# --- sources -----------------------------------------------------------------------------
DEVICE_SRC    := $(sort $(wildcard allocator/device/*.c))
ALLOCATOR_SRC := $(sort $(filter-out $(DEVICE_SRC),$(wildcard allocator/*.c allocator/policies/*.c allocator/eviction/*.c)))
WORKLOADS_SRC := $(sort $(wildcard workloads/*.c workloads/formats/*.c))
SIM_SRC       := $(sort $(filter-out sim/main.c,$(wildcard sim/*.c sim/schedulers/*.c))) $(B)/gen/page_assets.c
TEST_SRC      := $(sort $(wildcard tests/unit/test_*.c tests/contract/test_*.c tests/golden/test_*.c tests/model/test_*.c tests/cli/test_*.c))
TEST_LIB_SRC  := $(sort $(filter-out $(wildcard tests/*/test_*.c),$(wildcard tests/*.c tests/model/*.c)))
FUZZ_SRC      := $(sort $(wildcard tests/fuzz/fuzz_*.c))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
DEVICE_LIB    := $(B)/libpagesim_device.a
ALLOCATOR_LIB := $(B)/libpagesim_allocator.a
WORKLOADS_LIB := $(B)/libpagesim_workloads.a
SIM_LIB       := $(B)/libpagesim_sim.a
TEST_LIB      := $(B)/libpagesim_test.a
PROGRAM       := $(B)/pagesim
TESTS         := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
# A fuzz target has one function, LLVMFuzzerTestOneInput; here it is linked with a plain main
# that replays the files it is given, so that the corpus runs in every check.
FUZZ_REPLAY   := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%_replay,$(FUZZ_SRC))

ALL_OBJ := $(call obj,$(DEVICE_SRC) $(ALLOCATOR_SRC) $(WORKLOADS_SRC) $(SIM_SRC) sim/main.c $(TEST_SRC) $(TEST_LIB_SRC) $(FUZZ_SRC) $(wildcard tests/fuzz/replay_main.c))

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
endif

.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all man test check demo repro claims block-size bench test-full asan install uninstall dist clean help tests FORCE

all: $(PROGRAM)

# Rewritten only when the compiler or a flag changes; every object depends on it.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' | cmp -s - $@ || printf '%s\n' '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' > $@

# Lists made from file names: allocator/policies/NAME.c defines `kv_policy_NAME_ops`,
# sim/cmd_NAME.c defines `command_NAME`, and so on. Compared before they replace the old one.
define list_rule
$(B)/gen/$(1): FORCE
	@mkdir -p $$(@D)
	@for f in $(sort $(2)); do n=$$$${f##*/}; n=$$$${n%.c}; n=$$$${n#$(3)}; echo "X($$$$n)"; done > $$@.new
	@cmp -s $$@.new $$@ && rm -f $$@.new || mv $$@.new $$@
endef
$(eval $(call list_rule,kv_policies.inc,$(wildcard allocator/policies/*.c),))
$(eval $(call list_rule,commands.inc,$(wildcard sim/cmd_*.c),cmd_))
$(eval $(call list_rule,schedulers.inc,$(wildcard sim/schedulers/*.c),))
$(eval $(call list_rule,formats.inc,$(wildcard workloads/formats/*.c),))
$(eval $(call list_rule,evictions.inc,$(wildcard allocator/eviction/*.c),))

# What `pagesim report` puts into its pages. The plotting library comes from npm (scripts/setup.sh gets it); a build
# without it makes pages whose plots are tables.
PAGE_LIBRARY := sim/page/node_modules/uplot
$(B)/gen/page_assets.c: FORCE
	@mkdir -p $(@D)
	@sh scripts/embed.sh sim/page_internal.h page_asset page_style=sim/page/page.css \
	    page_script=$(subst $(eval) ,$(comma),$(sort $(wildcard sim/page/*.js))) \
	    page_library_script=$(wildcard $(PAGE_LIBRARY)/dist/uPlot.iife.min.js) \
	    page_library_style=$(wildcard $(PAGE_LIBRARY)/dist/uPlot.min.css) \
	    page_library_licence=$(wildcard $(PAGE_LIBRARY)/LICENSE) > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

GEN := $(B)/gen/kv_policies.inc $(B)/gen/commands.inc $(B)/gen/schedulers.inc $(B)/gen/formats.inc $(B)/gen/evictions.inc

$(B)/obj/%.o: %.c $(B)/flags | $(GEN)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# An archive is removed before it is made: deleted sources would live on in it.
define archive_rule
$(1): $(call obj,$(2))
	$$(say) AR $$@
	@rm -f $$@
	$(Q)$(AR) rcs $$@ $$^
endef
$(eval $(call archive_rule,$(DEVICE_LIB),$(DEVICE_SRC)))
$(eval $(call archive_rule,$(ALLOCATOR_LIB),$(ALLOCATOR_SRC)))
$(eval $(call archive_rule,$(WORKLOADS_LIB),$(WORKLOADS_SRC)))
$(eval $(call archive_rule,$(SIM_LIB),$(SIM_SRC)))
$(eval $(call archive_rule,$(TEST_LIB),$(TEST_LIB_SRC)))
# Everything but main, to be installed.
LIBRARY := $(B)/libpagesim.a
$(eval $(call archive_rule,$(LIBRARY),$(SIM_SRC) $(ALLOCATOR_SRC) $(WORKLOADS_SRC) $(DEVICE_SRC)))

# sim knows everything; allocator and workloads know nothing of each other or of sim.
ALL_LIBS := $(SIM_LIB) $(ALLOCATOR_LIB) $(WORKLOADS_LIB) $(DEVICE_LIB)

$(PROGRAM): $(B)/obj/sim/main.o $(ALL_LIBS) $(B)/flags
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

# A unit test of a folder links that folder's archive alone, so that a wrong call does not even
# link: tests/unit/test_allocator_*.c, test_workloads_*.c, test_device_*.c; others link all.
define test_rule
$(patsubst tests/%.c,$(B)/tests/%,$(1)): $(call obj,$(1)) $(TEST_LIB) $(2) $(B)/flags
	$$(say) LD $$@
	@mkdir -p $$(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $$@ $$(filter %.o %.a,$$^) -lcmocka $(LIBS)
endef
libs_of = $(if $(findstring /test_allocator_,$(1)),$(ALLOCATOR_LIB),$(if $(findstring /test_workloads_,$(1)),$(WORKLOADS_LIB),$(if $(findstring /test_device_,$(1)),$(DEVICE_LIB),$(ALL_LIBS))))
$(foreach t,$(TEST_SRC),$(eval $(call test_rule,$(t),$(call libs_of,$(t)))))

$(B)/fuzz/%_replay: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/replay_main.o $(TEST_LIB) $(ALL_LIBS)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

tests: $(PROGRAM) $(TESTS) $(FUZZ_REPLAY)

# Runs every test program and replays every fuzz corpus; ends with the counts of cases.
test check: tests
	@MODE=$(MODE) sh scripts/run_tests.sh $(TESTS)

# What needs a browser: scripts/setup.sh --full installs it.
test-full: $(PROGRAM)
	@PAGESIM_BIN=$(PROGRAM) node tests/browser/report.mjs

asan:
	@$(MAKE) --no-print-directory MODE=asan test

demo: $(PROGRAM)
	@sh scripts/demo.sh $(PROGRAM) build/demo

repro: $(PROGRAM)
	@sh scripts/repro/repro.sh $(PROGRAM) build/repro

# Claims about serving, each with a verdict from runs; docs/claims.md has the table.
claims: $(PROGRAM)
	@sh scripts/claims/claims.sh $(PROGRAM) build/claims

# The tables and plots of docs/block-size.md; fails when the page has others.
block-size: $(PROGRAM)
	@sh scripts/block_size/block_size.sh $(PROGRAM) build/block_size $(if $(UPDATE),--update)

bench: $(PROGRAM)
	@$(PROGRAM) bench
	@sh scripts/bench_instructions.sh $(PROGRAM)

# Manual pages and completion are what the program says of itself.
man: $(B)/man/pagesim.1 $(B)/pagesim.bash

$(B)/man/pagesim.1: $(PROGRAM) scripts/manual_pages.sh
	$(say) MAN $(@D)
	@sh scripts/manual_pages.sh $(PROGRAM) $(@D)

$(B)/pagesim.bash: $(PROGRAM)
	@$(PROGRAM) help --completion bash > $@

$(B)/pagesim.pc: FORCE
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: pagesim' \
	    'Description: simulator of KV-cache block allocation; headers for plug-ins' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lpagesim $(LIBS)' > $@

install: $(PROGRAM) $(LIBRARY) $(B)/pagesim.pc man
	sh scripts/install_headers.sh $(DESTDIR)$(PREFIX)/include/pagesim
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/
	install -m 644 $(B)/pagesim.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/pagesim/plot $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(B)/pagesim.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pagesim
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/pagesim
	install -m 644 $(wildcard scripts/plot/*.gp) $(DESTDIR)$(PREFIX)/share/pagesim/plot/

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/pagesim
	rm -f $(DESTDIR)$(PREFIX)/lib/libpagesim.a $(DESTDIR)$(PREFIX)/lib/pkgconfig/pagesim.pc
	rm -f $(DESTDIR)$(PREFIX)/bin/pagesim
	rm -rf $(DESTDIR)$(PREFIX)/share/pagesim
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/pagesim.1 $(DESTDIR)$(PREFIX)/share/man/man1/pagesim-*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pagesim

# The commit as a tarball: the same bytes each time.
dist:
	@mkdir -p build
	git archive --format=tar --prefix=pagesim-$(VERSION)/ HEAD | gzip -9n > build/pagesim-$(VERSION).tar.gz
	@echo build/pagesim-$(VERSION).tar.gz

clean:
	rm -rf build

help:
	@echo 'make             build/release/pagesim'
	@echo 'make test        builds and runs the test suite'
	@echo 'make test-full   the tests that need a browser (scripts/setup.sh --full installs it)'
	@echo 'make asan        the same under the address and undefined-behaviour sanitizers'
	@echo 'make demo        the main job: policies x block sizes, tables and plots in build/demo/'
	@echo 'make repro       regenerates published figures in build/repro/'
	@echo 'make claims      what people say about FP8, paging and prefix caching, put to runs; table in build/claims/'
	@echo 'make block-size  tables and plots of docs/block-size.md in build/block_size/; UPDATE=1 puts them there'
	@echo 'make bench       the benchmark of the project itself'
	@echo 'make man         manual pages and completion for bash'
	@echo 'make install     PREFIX=/usr/local, DESTDIR='
	@echo 'make dist        build/pagesim-$(VERSION).tar.gz, of the last commit'
	@echo 'make clean       removes build/'
	@echo 'Variables: MODE=release|debug|asan|tsan|cov, CC, CFLAGS, LDFLAGS, V=1 shows commands'

-include $(ALL_OBJ:.o=.d)
