# SPDX-License-Identifier: Apache-2.0
#
# `make verify-pairs` and `make verify-matrix`: `trn verify` in several builds,
# each of which must give the kept digests in every way to run it.

.PHONY: verify-build verify-pairs verify-matrix
verify-build: $(B)/trn $(B)/trn-loop.so
	@echo $(B)
verify-pairs: ## equal digests over each pair of sets, threads, engines, ways, builds
	$(Q)MAKE='$(MAKE)' sh scripts/verify_matrix.sh pairs
verify-matrix: ## the same over all combinations; twenty minutes
	$(Q)MAKE='$(MAKE)' sh scripts/verify_matrix.sh all
