# SPDX-License-Identifier: Apache-2.0
#
# Checks, and the pages that are written from the sources.  Part of the one
# makefile.

.PHONY: check format format-check lint tidy cppcheck layers sizes banned names
.PHONY: headers symbols instructions docs docs-complete cases-complete self-test
check: deps-check ## set up, then every check below and the tests with sanitizers
	$(Q)MAKE='$(MAKE)' sh scripts/check.sh

format: ## rewrite the C files by .clang-format
	$(Q)clang-format -i $(C_FILES)
format-check: ## fail where `make format` would change a file
	$(Q)clang-format --dry-run --Werror $(C_FILES)

lint: tidy cppcheck layers sizes banned names ## clang-tidy, cppcheck, own rules
tidy: ## clang-tidy alone
	$(Q)printf '%s\n' $(filter %.c,$(C_FILES)) | X86=$(X86) \
	    OPENMP=$(if $(HAVE_OPENMP),-fopenmp) FLAGS="-DTRN_CHECK $(filter-out \
	    -O%,$(BASE)) -I$(B) $(LIB_DEFS) $(PEER_DEFS) $(TOOL_DEFS) $(HDF5_CFLAGS)" sh scripts/tidy.sh
cppcheck: ## cppcheck alone
	$(Q)cppcheck --quiet --std=c11 -j2 --inline-suppr --error-exitcode=1 \
	    --enable=warning,performance,portability --library=posix,gnu -DTRN_CHECK \
	    --suppressions-list=scripts/cppcheck.allow -Iinclude -I. \
	    -D__x86_64__=1 -D__GNUC__=12 -D_OPENMP=201511 $(LIB_DEFS) $(TOOL_DEFS) $(PEER_DEFS) \
	    $(filter %.c,$(C_FILES))
layers: ## who may include whom
	$(Q)sh scripts/layers.sh
sizes: ## lengths of files and functions
	$(Q)sh scripts/sizes.sh
banned: ## calls and comments that are not allowed
	$(Q)sh scripts/banned.sh
names: $(B)/libtrn.a ## linkable names start with trn_ or trn__
	$(Q)sh scripts/names.sh $<
headers: ## each public header alone as C11 and as C++11
	$(Q)CC='$(CC)' sh scripts/headers.sh
symbols: $(B)/libtrn.so ## exported symbols are the TRN_API declarations
	$(Q)CC='$(CC)' sh scripts/symbols.sh $<
instructions: $(LIBRARIES) ## no instruction or import that moves bits
	$(Q)sh scripts/instructions.sh $(B)
docs: test-build ## write the generated pages and the maps of the folders
	$(Q)sh scripts/reference.sh >docs/reference.md.new
	$(Q)mv docs/reference.md.new docs/reference.md
	$(Q)TRN_LOOP_PATH=$(CURDIR)/$(B)/trn-loop.so TRN_WRITE_DOCS=1 \
	    $(B)/tests/test_placement >/dev/null
	$(Q)perl scripts/maps.pl write
docs-complete: ## rows and rules are documented, generated pages current
	$(Q)sh scripts/docs_complete.sh
	$(Q)perl scripts/maps.pl check
	$(Q)perl scripts/mutations.pl check
	$(Q)sh scripts/reference.sh | cmp -s - docs/reference.md || \
	    { echo 'docs/reference.md: is not current; `make docs` writes it'; exit 1; }
cases-complete: ## every row of ops.def has a test case
	$(Q)sh scripts/cases_complete.sh
self-test: ## every check finds the fault it is for
	$(Q)sh scripts/self_test.sh
