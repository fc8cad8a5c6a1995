# SPDX-License-Identifier: Apache-2.0
#
# The two libraries of the benchmark's case "rules", each in a shared object
# with the model that it trains.  Part of the one makefile.
#
# TRN_FREE_ORDER exists for this comparison alone: it lets sums have f32 lanes
# and cuts k elsewhere, so its bits are nobody's.

SIDE_OBJ := $(call objects,bench/free_order/side.c bench/model.c)
FREE_SRC := bench/free_order/side.c $(wildcard backends/cpu/*.c) \
            $(if $(X86),kernels/free_order/free_reduce.c)
FREE_OBJ := $(FREE_SRC:%.c=$(B)/free/%.o)
SIDES := $(B)/bench-rules.so $(B)/bench-free.so

$(B)/free/kernels/free_order/free_reduce.o: FOLDER := -mavx2 -mfma
$(B)/free/%.o: %.c
	$(SAY) CC free/$<
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -DTRN_FREE_ORDER -c -o $@ $<
$(B)/bench-rules.so: $(SIDE_OBJ) $(LIB_OBJ)
$(B)/bench-free.so: $(FREE_OBJ) $(call objects,bench/model.c) \
    $(filter-out $(B)/backends/cpu/%,$(LIB_OBJ))
$(SIDES): $(B)/lib.list
	$(SAY) LD $@
	$(Q)$(LINK) -shared -Wl,-Bsymbolic -o $@ $(filter %.o,$^) $(LIBS) $(LDFLAGS)
-include $(patsubst %.o,%.d,$(FREE_OBJ) $(SIDE_OBJ))
