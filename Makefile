# SPDX-License-Identifier: Apache-2.0
#
# The one makefile of libtrn.  Sources are found by wildcard; objects lie in
# build/<checksum of compiler and flags>/, and build/trn, build/libtrn.so,
# build/libtrn.a and build/examples/ lead to the newest release build.
#
#   make CC=clang OPT=-O1             another compiler, another level
#   make SAN=address,undefined test   with sanitizers and internal checks
#   make WERROR=1 V=1                 warnings are errors; commands are shown
#   make WITHOUT="zlib openmp"        as if these were not installed; WITHOUT=all
#   make test T="matmul data"         only test_matmul.c and test_data.c
#   make test T=add_op                only tests/add_op_test.sh
#
# CFLAGS and LDFLAGS are the user's and come last.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR .SUFFIXES .SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

Q := $(if $(filter 1,$(V)),,@)
SAY = $(if $(filter 1,$(V)),@:,@printf '  %-5s %s\n')
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
OPT ?= $(if $(SAN),-O1,-O3)
AR ?= ar
C_DIRS := include libtrn kernels backends tools examples tests bench

version = $(shell sed -n 's/^.define TRN_VERSION_$(1) //p' include/trn/version.h)
MAJOR := $(call version,MAJOR)
VERSION := $(MAJOR).$(call version,MINOR).$(call version,PATCH)
# Before 1.0 another minor version may be another interface.
SONAME := libtrn.so.$(MAJOR)$(if $(filter 0,$(MAJOR)),.$(call version,MINOR))

# Targets that install or read and must not look for a compiler first.  Those
# that build go on in a second make, which finds what was installed.
SETUP := demo test test-xla test-math check without deps deps-demo deps-test deps-xla deps-check
PLAIN := $(SETUP) help clean distclean format format-check layers sizes banned \
         docs-complete cases-complete self-test valgrind tsan \
         mutations mutations-check verify-pairs verify-matrix
GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter $(SETUP) valgrind tsan,$(GOALS)),)
.NOTPARALLEL:
endif

# ---- Optional libraries -----------------------------------------------------

# Each with the tests that `make without` runs where it is left out; what it
# means to the build are the variables HAVE_<NAME>, <NAME>_CFLAGS, <NAME>_LIBS.
PART_TESTS := openmp:threads,threads_modes zlib:idx,data_files \
              protobuf-c:hlo_module,lower,pjrt hdf5:checkpoint,checkpoint_files,checkpoint_index \
              openblas:openblas,openblas_library \
              jansson:trn_program mpfr:vmath
PARTS := $(foreach p,$(PART_TESTS),$(firstword $(subst :, ,$(p))))
LEFT_OUT := $(sort $(if $(filter all,$(WITHOUT)),$(PARTS),$(WITHOUT)))
$(if $(filter-out $(PARTS),$(LEFT_OUT)),$(error \
    WITHOUT: there is no $(filter-out $(PARTS),$(LEFT_OUT)); expected all, or of: $(PARTS)))

# ---- Compiler, flags and the folder named after them -----------------------

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wundef -Wvla -Wcast-qual -Wwrite-strings \
        -Wformat=2 -Wswitch-enum $(if $(WERROR),-Werror)
BASE := -std=c17 -D_POSIX_C_SOURCE=200809L -Iinclude -I. $(OPT) -fPIC \
        -fvisibility=hidden -fno-math-errno -fno-trapping-math \
        -ffp-contract=off -pthread
ifneq ($(SAN),)
BASE += -g -DTRN_CHECK -fno-omit-frame-pointer -fsanitize=$(SAN) \
        -fno-sanitize-recover=all
endif

ifneq ($(filter-out $(PLAIN),$(GOALS)),)
quote = '$(subst ','\'',$(1))'
checksum = $(shell printf '%s' $(call quote,$(1)) | cksum | cut -d' ' -f1)
CC_ID := $(CC) $(shell $(CC) --version 2>&1 | head -n 1) \
         $(shell $(CC) -dumpmachine 2>/dev/null)

# What the compiler finds of the optional libraries is asked once and kept, until
# other questions are asked.
CONFIG := build/config-$(call checksum,$(CC_ID) $(SAN) $(CFLAGS) $(LDFLAGS) \
                         $(shell cksum <scripts/probe.sh)).mk
PROBED := $(shell test -s $(CONFIG) || CC=$(call quote,$(CC)) \
    FLAGS=$(call quote,$(CFLAGS) $(LDFLAGS)) SAN=$(call quote,$(SAN)) \
    sh scripts/probe.sh $(CONFIG) >&2; test -s $(CONFIG) && echo yes)
ifneq ($(PROBED),yes)
$(error the compiler '$(CC)' does not work)
endif
include $(CONFIG)
$(foreach p,$(if $(LEFT_OUT),$(shell echo $(LEFT_OUT) | tr -d - | tr a-z A-Z)),\
    $(foreach v,HAVE_$(p) $(p)_CFLAGS $(p)_LIBS,$(eval $(v) :=)))
endif

X86 := $(filter x86_64-%,$(MACHINE))
LIB_DEFS := $(if $(X86),,-DTRN_NO_AVX2) $(if $(HAVE_ZLIB),-DTRN_HAVE_ZLIB) \
            $(if $(HAVE_OPENMP),-DTRN_HAVE_OPENMP) $(if $(HAVE_PROTOBUFC),-DTRN_HAVE_PROTOBUFC) \
            $(if $(HAVE_HDF5),-DTRN_HAVE_HDF5)
TOOL_DEFS := $(if $(HAVE_JANSSON),-DTRN_HAVE_JANSSON)
PEER_DEFS := $(if $(HAVE_OPENBLAS),-DTRN_HAVE_OPENBLAS $(OPENBLAS_CFLAGS)) \
             $(if $(HAVE_MPFR),-DTRN_HAVE_MPFR)
LIBS := $(if $(HAVE_ZLIB),-lz) $(if $(HAVE_PROTOBUFC),-lprotobuf-c) $(HDF5_LIBS) \
        $(if $(HAVE_OPENMP),-fopenmp) -pthread -ldl -lm
TOOL_LIBS := $(if $(HAVE_JANSSON),-ljansson)
PEER_LIBS := $(if $(HAVE_OPENBLAS),$(OPENBLAS_LIBS)) \
             $(if $(HAVE_MPFR),-lmpfr -lgmp)

COMPILE = $(CC) $(BASE) $(WARN) $(LIB_DEFS) $(FOLDER) -MMD -MP $(CFLAGS)
LINK = $(CC) $(OPT) -pthread $(if $(SAN),-fsanitize=$(SAN)) $(CFLAGS)
ifdef CONFIG
# Flags of tools, tests, benchmarks and OpenBLAS are not in the name: these objects depend
# on $(CONFIG), so what `make test` installs does not rebuild the library.
KEY := $(call checksum,$(CC_ID) $(BASE) $(WARN) $(LIB_DEFS) $(LIBS) \
                       $(CFLAGS) $(LDFLAGS) \
                       $(LEFT_OUT) $(filter HAVE_%,$(MAKEOVERRIDES)))
B := build/$(KEY)
else
B := build/none
endif
RUN := $(if $(SAN)$(filter no,$(LINKS)),$(B),build)

# ---- Sources ----------------------------------------------------------------

LIB_SRC := $(sort $(wildcard libtrn/*/*.c kernels/*.c kernels/generic/*.c \
                             $(foreach b,cpu hlo pjrt,backends/$(b)/*.c)))
LIB_SRC += $(if $(X86),$(sort $(wildcard kernels/avx2/*.c)))
TOOL_SRC := $(sort $(wildcard tools/*.c))
EXAMPLE_SRC := $(sort $(wildcard examples/*.c))
TEST_SRC := $(sort $(wildcard tests/test_*.c))
LONG_SRC := tests/random_long.c
# The files of the library that ask whether it may load OpenBLAS.
BLAS_SRC := libtrn/context/context.c backends/cpu/cpu_blas.c
HELPER_SRC := $(filter-out $(TEST_SRC) $(LONG_SRC),$(sort $(wildcard tests/*.c)))
BENCH_SRC := $(sort $(wildcard bench/*.c))
C_FILES = $(sort $(wildcard $(foreach e,c h,$(foreach p,* */* */*/*,$(C_DIRS:%=%/$(p).$(e))))))

objects = $(patsubst %.c,$(B)/%.o,$(1))
LIB_OBJ := $(call objects,$(LIB_SRC)) $(if $(HAVE_PROTOBUFC),$(B)/backends/hlo/hlo.pb-c.o)
EXAMPLES := $(EXAMPLE_SRC:%.c=$(B)/%)
TESTS := $(TEST_SRC:%.c=$(B)/%)
CHOSEN := $(if $(T),$(sort $(wildcard $(T:%=tests/test_%.c))),$(TEST_SRC))
# Tests that build something themselves; sanitizers would find nothing in them.
CHOSEN_SH := $(if $(SAN),,$(sort $(wildcard $(if $(T),$(T:%=tests/%_test.sh),\
                                                    tests/*_test.sh))))
$(foreach t,$(T),$(if $(wildcard tests/test_$(t).c tests/xla/test_$(t).c tests/$(t)_test.sh),,\
    $(error T: there is no tests/test_$(t).c)))
PROGRAMS := $(if $(TOOL_SRC),$(B)/trn) $(EXAMPLES)
LIBRARIES := $(B)/libtrn.a $(B)/libtrn.so $(B)/trn-loop.so

.PHONY: all FORCE
all: $(LIBRARIES) $(PROGRAMS) ## libraries, the trn program, examples (default)
ifeq ($(SAN)$(filter no,$(LINKS)),)
	@for f in libtrn.a libtrn.so $(SONAME) trn-loop.so trn examples; do \
	  if test -e $(B)/$$f; then ln -sfn $(KEY)/$$f build/$$f; fi; done
endif

# ---- Rules ------------------------------------------------------------------

# Instruction sets and libraries belong to folders, one file excepted.
$(B)/kernels/avx2/%.o: FOLDER := -mavx2 -mfma -mf16c
$(call objects,$(BLAS_SRC)) $(BLAS_SRC:%.c=$(B)/free/%.o): FOLDER := \
    $(if $(HAVE_OPENBLAS),-DTRN_HAVE_OPENBLAS)
$(B)/libtrn/context/threads_openmp.o: FOLDER := $(if $(HAVE_OPENMP),-fopenmp)
$(B)/libtrn/io/%.o: FOLDER := $(HDF5_CFLAGS)
$(B)/tools/%.o: FOLDER := $(TOOL_DEFS)
$(B)/tests/%.o: FOLDER := $(PEER_DEFS) $(TOOL_DEFS) $(HDF5_CFLAGS)
# Tests that are programs which use OpenMP themselves.
OMP_TESTS := threads host_state host_openmp
$(foreach f,$(OMP_TESTS),$(B)/tests/test_$(f).o) $(B)/tests/host_state.o: FOLDER := $(if $(HAVE_OPENMP),-fopenmp)
$(B)/tests/amx_tile.o: FOLDER := $(if $(HAVE_AMX),-mamx-tile -mamx-bf16 -DTRN_HAVE_AMX)
$(B)/bench/%.o: FOLDER := $(PEER_DEFS)
$(BLAS_SRC:%.c=$(B)/free/%.o) $(call objects,$(BLAS_SRC) $(TOOL_SRC) $(TEST_SRC) $(HELPER_SRC) $(LONG_SRC) $(BENCH_SRC)): $(CONFIG)

$(B)/%.o: %.c
	$(SAY) CC $<
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -c -o $@ $<

# Lists of objects, so that a removed source file leaves its library too.
$(B)/%.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(LIST) | cmp -s - $@ || printf '%s\n' $(LIST) >$@
$(B)/lib.list: LIST = $(LIB_SRC)
$(B)/trn.list: LIST = $(TOOL_SRC)
$(B)/tests.list: LIST = $(HELPER_SRC)
$(B)/bench.list: LIST = $(BENCH_SRC)

$(B)/libtrn.a: $(LIB_OBJ) $(B)/lib.list
	$(SAY) AR $@
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJ)

$(B)/$(SONAME): $(LIB_OBJ) $(B)/lib.list
	$(SAY) LD $@
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) $(if $(SAN),,-Wl,-z,defs) \
	    -o $@ $(LIB_OBJ) $(LIBS) $(LDFLAGS)

$(B)/libtrn.so: $(B)/$(SONAME)
	@ln -sfn $(SONAME) $@

# Programs link the static library, whose hidden symbols tests can reach.
$(B)/trn: $(call objects,$(TOOL_SRC)) $(B)/trn.list
$(EXAMPLES): %: %.o
$(TESTS): %: %.o $(call objects,$(HELPER_SRC)) $(B)/tests.list
$(B)/random-long: $(call objects,$(LONG_SRC) $(HELPER_SRC)) $(B)/tests.list
$(B)/bench-trn: $(call objects,$(BENCH_SRC)) $(B)/bench.list
$(B)/trn: PART_LIBS := $(TOOL_LIBS)
$(TESTS) $(B)/random-long: PART_LIBS := -lcmocka $(PEER_LIBS) $(TOOL_LIBS)
$(B)/bench-trn: PART_LIBS := $(PEER_LIBS)
$(B)/trn $(EXAMPLES) $(TESTS) $(B)/random-long $(B)/bench-trn: $(B)/libtrn.a
	$(SAY) LD $@
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(B)/libtrn.a $(PART_LIBS) $(LIBS) $(LDFLAGS)
	$(if $(SAN)$(filter no,$(LINKS)),,$(if $(filter %/random-long %/bench-trn,$@),\
	    @ln -sfn $(KEY)/$(@F) build/$(@F)))

include scripts/plugins.mk scripts/hlo.mk scripts/xla.mk scripts/math.mk scripts/bench.mk \
        scripts/numerics.mk scripts/without.mk
-include $(patsubst %.o,%.d,$(LIB_OBJ) $(PLUGINS:.so=.o) $(call objects,$(LOOP_SRC) \
  $(TOOL_SRC) $(EXAMPLE_SRC) $(TEST_SRC) $(HELPER_SRC) $(LONG_SRC) $(BENCH_SRC) $(XLA_SRC)))

# ---- Running ----------------------------------------------------------------

.PHONY: demo demo-run test test-run test-build bench bench-build valgrind tsan run-examples
demo: deps-demo ## set up, build, and train a character model for a minute or two
	$(Q)$(MAKE) demo-run
demo-run: all
	$(Q)$(RUN)/examples/demo $(ARGS)

test: deps-test ## set up, build, run the tests; T="name ..." for some
	$(Q)$(MAKE) test-run
test-build: all $(PLUGINS) $(B)/trn-loop-frozen.so $(if $(T),$(CHOSEN:%.c=$(B)/%),$(TESTS) $(B)/random-long)
test-build: $(if $(filter %/frozen_loop_test.sh,$(CHOSEN_SH)),$(FROZEN_TESTS))
test-run: test-build
	$(if $(CHOSEN)$(CHOSEN_SH),,$(error no tests/test_*.c$(if $(T), named $(T))))
	@mkdir -p $(B)/tests
	$(Q)TRN_BUILD=$(CURDIR)/$(B) TRN_LIBS='$(LIBS)' CC='$(CC)' \
	    TRN_LEFT_OUT='$(LEFT_OUT)' sh scripts/run_tests.sh $(B)/tests $(CHOSEN_SH) $(CHOSEN:%.c=$(B)/%)

N ?= 10000
SEED ?= 0
.PHONY: random
random: all $(B)/random-long ## N random programs and loops from SEED on; SEED=- goes on
	$(Q)TRN_LOOP_PATH=$(CURDIR)/$(B)/trn-loop.so $(B)/random-long $(N) $(SEED) $(B)

bench-build: $(B)/bench-trn $(SIDES) $(B)/tests/plugins/pjrt_timer.so
bench: all bench-build ## build and run the benchmarks; ARGS="..." are passed on
	$(Q)$(B)/bench-trn $(ARGS)

WITH_VALGRIND := valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible
valgrind: deps-check ## run the examples under valgrind
	$(Q)$(MAKE) OPT=-O1 CFLAGS='$(CFLAGS) -g' LINKS=no all
	$(Q)$(MAKE) OPT=-O1 CFLAGS='$(CFLAGS) -g' LINKS=no WITH='$(WITH_VALGRIND)' \
	    run-examples

TSAN_TESTS := contexts limits signals threads threads_modes threads_region
tsan: deps-test ## examples, and tests of threads or those of T="...", by ThreadSanitizer
	$(Q)$(MAKE) SAN=thread all
	$(if $(T),,$(Q)$(MAKE) SAN=thread run-examples)
	$(Q)$(MAKE) SAN=thread T='$(or $(T),$(TSAN_TESTS))' test-run

run-examples: $(EXAMPLES)
	$(Q)WITH='$(WITH)' sh scripts/run_examples.sh $(B)/examples

include scripts/checks.mk scripts/verify.mk

# ---- Set-up -----------------------------------------------------------------

.PHONY: deps deps-demo deps-test deps-xla deps-check install clean help
deps: deps-check ## install what is missing for all targets (Debian, Ubuntu)
deps-demo deps-test deps-xla deps-check: deps-%:
	$(Q)CC='$(CC)' sh scripts/deps.sh $*

install: all ## headers, libraries, trn, for pkg-config and CMake; DESTDIR=, PREFIX=
	$(Q)AT='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' MANDIR='$(MANDIR)' \
	    VERSION=$(VERSION) SONAME=$(SONAME) \
	    PRIVATE='$(LIBS)' sh scripts/install.sh $(B)

clean: ## remove build/
	$(Q)rm -rf build

help: ## this list
	@sed -n '/^#   /s/^#   /  /p' Makefile
	@awk -F ':.*## ' '/^[a-z-]+:.*## / \
	    { printf "  %-16s %s\n", $$1, $$2 }' Makefile scripts/*.mk
