# SPDX-License-Identifier: Apache-2.0
#
# `make without`: the library without each of its optional libraries in turn,
# and without all of them.  Part of the one makefile, which includes this file
# after its other rules.
#
# Flags are equal for most objects, so they are copied from the folder SHARE,
# where a build with all parts is; only files that scripts/part_files.sh lists
# are compiled anew.

.PHONY: without without-run where
without: deps-test ## build and test without each optional library, and without all
	$(Q)$(MAKE) without-run
without-run:
	$(Q)MAKE='$(MAKE)' sh scripts/without.sh '$(PART_TESTS)'
where: # the folder of this build
	@echo $(B)

ifneq ($(SHARE),)
SHARED := $(call objects,$(LIB_SRC) $(TOOL_SRC) $(EXAMPLE_SRC) $(TEST_SRC) \
                         $(HELPER_SRC) $(LOOP_SRC)) \
          $(PLUGINS:.so=.o) $(FROZEN_OBJ) $(MATH_PARTS)
SEEING := $(shell sh scripts/part_files.sh)
SHARED := $(filter-out $(call objects,$(SEEING)),$(SHARED))
$(SHARED): $(B)/%.o: $(SHARE)/%.o
	@mkdir -p $(@D)
	@cp -p $(SHARE)/$*.o $@
# What was copied before a header of it asked for a part is not used again.
$(B)/seeing.list: LIST = $(SEEING)
$(call objects,$(SEEING)): $(B)/seeing.list
endif
