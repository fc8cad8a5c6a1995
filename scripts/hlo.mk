# SPDX-License-Identifier: Apache-2.0
#
# The messages of backends/hlo/, which protoc-c writes in C from hlo.proto.
#
# Part of the one makefile, which includes this file after its other rules.
# Without protobuf-c nothing here is needed: hlo_encode.c is then a stub.

PB := $(B)/backends/hlo/hlo.pb-c
HLO_OBJ := $(filter $(B)/backends/hlo/%,$(LIB_OBJ))

$(HLO_OBJ): FOLDER := -I$(B)

ifneq ($(HAVE_PROTOBUFC),)
$(PB).c: backends/hlo/hlo.proto
	$(SAY) PROTO $<
	@mkdir -p $(B)
	$(Q)protoc-c --c_out=$(B) $<
$(PB).h: $(PB).c ;

# What a tool wrote is held to no style of ours.
$(PB).o: $(PB).c
	$(SAY) CC $<
	$(Q)$(COMPILE) -w -c -o $@ $<

$(HLO_OBJ) tidy: $(PB).h
endif
