# SPDX-License-Identifier: Apache-2.0
#
# `make test-math`: all of f32, and many pairs and f64, through the functions of
# the kernels and the conversions (tests/math/); under an hour on two cores.
#
# Part of the one makefile, which includes this file after its other rules.
# Finished lines stay in test-math.txt beside the objects: an interrupted run
# goes on behind them, `make test-math FRESH=1` begins anew.
#   make test-math ARGS="-s 64"         each 64th part, to estimate the time
#   make test-math ARGS="sin:f32 erf"   these alone

MATH_SRC := $(sort $(wildcard tests/math/*.c))
MATH_PARTS := $(call objects,$(addprefix tests/math/math_,composed.c draws.c functions.c \
                generic_fma.c ulps.c))

$(call objects,$(MATH_SRC)): $(CONFIG)
$(B)/tests/math/math_generic_fma.o: FOLDER := $(if $(X86),-mfma)
$(B)/tests/test_vmath: $(if $(HAVE_MPFR),$(MATH_PARTS))
$(B)/math.list: LIST = $(MATH_SRC)
$(B)/test-math: $(call objects,$(MATH_SRC)) $(B)/math.list $(B)/libtrn.a
	$(SAY) LD $@
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(B)/libtrn.a -lcmocka $(PEER_LIBS) $(LIBS) $(LDFLAGS)
-include $(patsubst %.c,$(B)/%.d,$(MATH_SRC))

.PHONY: test-math test-math-run
test-math: deps-test ## mathematics and conversions over all of f32; up to an hour
	$(Q)$(MAKE) test-math-run
test-math-run: $(B)/test-math
	$(if $(FRESH),@rm -f $(B)/test-math.txt)
	$(Q)$(B)/test-math -o $(B)/test-math.txt $(ARGS)
