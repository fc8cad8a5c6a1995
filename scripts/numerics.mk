# SPDX-License-Identifier: Apache-2.0
#
# `make mutations`: breaks each rule of docs/numerics.md in a copy of the sources
# and looks whether its tests see it.
#
# Part of the one makefile, which includes this file after its other rules.
#   make mutations M="bf16 random"      those whose name, rule or file holds a word

.PHONY: mutations mutations-check mutation-build
mutations: ## break each numerics rule in turn; its tests must fail; 10 minutes
	$(Q)MAKE='$(MAKE)' CC='$(CC)' perl scripts/mutations.pl run $(M)
mutations-check: ## pages, tests and mutations of the numerics rules agree
	$(Q)perl scripts/mutations.pl check

# What a mutation's tests need: test programs MUTATE, files PARTS of the build.
mutation-build: $(PARTS:%=$(B)/%) $(MUTATE:%=$(B)/tests/test_%)
	@echo 'build-folder: $(B)'
