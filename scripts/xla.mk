# SPDX-License-Identifier: Apache-2.0
#
# `make test-xla`: the programs of tests/xla/, which run libtrn's HLO through
# real XLA, in a PJRT plug-in for the CPU (scripts/xla_plugin.sh).
#
# Part of the one makefile, which includes this file after its other rules.
# Where no plug-in can be had, every test says so and is counted as skipped.
#   make test-xla T="xla_rows xla_steps"    only these of tests/xla/test_*.c

XLA_SRC := $(sort $(wildcard tests/xla/*.c))
XLA_TEST_SRC := $(sort $(wildcard tests/xla/test_*.c))
XLA_TESTS := $(XLA_TEST_SRC:%.c=$(B)/%)
XLA_HELPERS := $(call objects,$(filter-out $(XLA_TEST_SRC),$(XLA_SRC)) $(HELPER_SRC))
XLA_CHOSEN := $(if $(T),$(sort $(wildcard $(T:%=tests/xla/test_%.c))),$(XLA_TEST_SRC))

$(call objects,$(XLA_SRC)): $(CONFIG)
$(B)/xla.list: LIST = $(XLA_SRC)
$(XLA_TESTS): PART_LIBS := -lcmocka $(PEER_LIBS) $(TOOL_LIBS)
$(XLA_TESTS): %: %.o $(XLA_HELPERS) $(B)/tests.list $(B)/xla.list $(B)/libtrn.a
	$(SAY) LD $@
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(B)/libtrn.a $(PART_LIBS) $(LIBS) $(LDFLAGS)

.PHONY: test-xla test-xla-run test-xla-build
test-xla: deps-xla ## judge the HLO by real XLA; some minutes; T="xla_rows"
	$(Q)$(MAKE) test-xla-run
test-xla-build: all $(PLUGINS) $(XLA_TESTS)
test-xla-run: test-xla-build
	$(if $(XLA_CHOSEN),,$(error no tests/xla/test_*.c$(if $(T), named $(T))))
	@mkdir -p $(B)/tests/xla
	$(Q)TRN_BUILD=$(CURDIR)/$(B) sh scripts/test_xla.sh $(B)/tests/xla \
	    $(XLA_CHOSEN:%.c=$(B)/%)

.PHONY: random-xla random-xla-run
random-xla: deps-xla ## N random programs by XLA from SEED on; SEED=- goes on
	$(Q)$(MAKE) random-xla-run
random-xla-run: all $(B)/tests/xla/test_xla_random
	$(Q)TRN_PJRT_PLUGIN=$$(sh scripts/xla_plugin.sh) && \
	    export TRN_PJRT_PLUGIN && \
	    $(B)/tests/xla/test_xla_random --long $(N) $(SEED) $(B)
