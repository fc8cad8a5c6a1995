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
$(B)/trn-loop.so $(PLUGINS):
	$(SAY) LD $@
	$(Q)$(LINK) -shared -o $@ $(filter-out %.list,$^) $(LDFLAGS)
