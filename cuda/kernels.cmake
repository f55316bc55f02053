# sorot_kernels(TARGET sources.cu...): how sources with kernels are compiled, by nvcc or for the emulator.
function(sorot_kernels target)
  if(sorot_cuda STREQUAL "EMULATED")
    # Kernels look at shared memory as it suits them, and round where the GPU does. At -O3 the
    # kernels of attention take more than 67 s of CPU time to compile, at -O2 51 s (g++ 12).
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES
      LANGUAGE CXX
      COMPILE_OPTIONS "-x;c++;-fno-strict-aliasing;-ffp-contract=off;-Wno-unknown-pragmas;$<$<CONFIG:Release>:-O2>")
    return()
  endif()

  # No fused multiply-add but those that kernels ask for: the emulator rounds alike. C++20 by hand and not by the
  # property, because CMake 3.25 does not know that nvcc has it.
  set(flags -std=c++20 -fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow)
  if(SOROT_WERROR)
    list(APPEND flags --Werror=all-warnings -Xcompiler=-Werror -Xptxas=--warning-as-error)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  set_property(TARGET ${target} PROPERTY CUDA_STANDARD)
  set_target_properties(${target} PROPERTIES
    CUDA_ARCHITECTURES "${SOROT_CUDA_ARCHITECTURES}"
    CUDA_VISIBILITY_PRESET hidden)
endfunction()
