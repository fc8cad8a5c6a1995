# SPDX-License-Identifier: Apache-2.0
#
# The libraries of the benchmark's cases "rules", each in a shared object with
# the model that it trains.  Part of the one makefile.
#
# TRN_FREE_ORDER and TRN_FREE_FMA exist for these comparisons alone: without the
# rules their bits are nobody's.
#   bench-free.so      rules of sums, products and state can be left out
#   bench-unfused.so   generic kernels that round a*b + c twice

FREE_SRC := bench/free_order/side.c backends/cpu/cpu_device.c \
            $(wildcard backends/cpu/cpu_matmul*.c) \
            $(if $(X86),$(wildcard kernels/free_order/*.c))
FREE_FMA_SRC := $(wildcard kernels/generic/*.c)
free = $(patsubst %.c,$(B)/free/%.o,$(1))
# The library's objects, those of the sources $(1) in their free form.
with_free = $(call free,$(1)) $(call objects,bench/model.c) \
            $(filter-out $(call objects,$(1)),$(LIB_OBJ))
SIDES := $(B)/bench-free.so $(B)/bench-unfused.so

$(B)/free/kernels/free_order/%.o: FOLDER := -mavx2 -mfma
$(B)/free/kernels/generic/%.o: FOLDER := -DTRN_FREE_FMA
$(B)/free/%.o: %.c
	$(SAY) CC free/$<
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -DTRN_FREE_ORDER -c -o $@ $<
$(B)/bench-free.so: $(call with_free,$(FREE_SRC))
$(B)/bench-unfused.so: $(call with_free,$(FREE_SRC) $(FREE_FMA_SRC))
$(SIDES): $(B)/lib.list
	$(SAY) LD $@
	$(Q)$(LINK) -shared -Wl,-Bsymbolic -o $@ $(filter %.o,$^) $(LIBS) $(LDFLAGS)
-include $(patsubst %.o,%.d,$(call free,$(FREE_SRC) $(FREE_FMA_SRC)))
