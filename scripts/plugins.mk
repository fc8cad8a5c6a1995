# SPDX-License-Identifier: Apache-2.0
#
# Devices in shared objects: the loop device and the plug-ins of the tests.
#
# Part of the one makefile, which includes this file after its other rules.
# A device sees include/ alone, so a header of the core does not compile in it.
# `make install` installs none of these.

LOOP_SRC := $(sort $(wildcard backends/loop/*.c))
PLUGINS := $(patsubst %.c,$(B)/%.so,$(sort $(wildcard tests/plugins/*.c)))

$(B)/backends/loop/%.o $(B)/tests/plugins/%.o: BASE := $(filter-out -I.,$(BASE))
$(B)/loop.list: LIST = $(LOOP_SRC)

$(B)/trn-loop.so: $(call objects,$(LOOP_SRC)) $(B)/loop.list
$(PLUGINS): %.so: %.o
$(B)/trn-loop.so $(B)/trn-loop-frozen.so $(PLUGINS):
	$(SAY) LD $@
	$(Q)$(LINK) -shared -o $@ $(filter-out %.list,$^) $(LDFLAGS)

# The loop device once more, as one that was built when the table was frozen, and
# the tests that run again on it.
FROZEN_OBJ := $(LOOP_SRC:%.c=$(B)/frozen/%.o)
FROZEN_TESTS := $(patsubst %,$(B)/tests/test_%,flights loop loop_faults lower)
$(B)/frozen/trn/backend.h: tests/plugins/frozen_backend_v1_part3.h
$(B)/frozen/trn/ops.def: tests/plugins/frozen_ops_v1.def
$(B)/frozen/trn/backend.h $(B)/frozen/trn/ops.def:
	@mkdir -p $(@D)
	@cp $< $@
$(B)/frozen/%.o: BASE := $(filter-out -I. -Iinclude,$(BASE)) -I$(B)/frozen
$(B)/frozen/%.o: %.c $(B)/frozen/trn/backend.h $(B)/frozen/trn/ops.def
	$(SAY) CC $< as it was frozen
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -c -o $@ $<
$(B)/trn-loop-frozen.so: $(FROZEN_OBJ) $(B)/loop.list
-include $(FROZEN_OBJ:.o=.d)
