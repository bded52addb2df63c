"""The forward pass on a GPU: the kernels of `outrider_kernels.triton_twins`, one after the other, recorded once."""
