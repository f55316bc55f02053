# sorot_kernels(TARGET [MINIMUM_ARCHITECTURE 80] sources.cu...): adds sources with kernels to a target, compiled by nvcc
# or for the emulator. With a MINIMUM_ARCHITECTURE nvcc compiles them for those of SOROT_CUDA_ARCHITECTURES only that
# know their instructions.
function(sorot_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MINIMUM_ARCHITECTURE" "")
  list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]" OUTPUT_VARIABLE sources)
  set_property(TARGET ${target} APPEND PROPERTY SOROT_KERNEL_SOURCES ${sources})
  if(sorot_cuda STREQUAL "EMULATED")
    target_sources(${target} PRIVATE ${sources})
    # Kernels look at shared memory as it suits them, and round where the GPU does. At -O3 the
    # kernels of attention take more than 67 s of CPU time to compile, at -O2 51 s (g++ 12).
    set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES
      LANGUAGE CXX
      COMPILE_OPTIONS "-x;c++;-fno-strict-aliasing;-ffp-contract=off;-Wno-unknown-pragmas;$<$<CONFIG:Release>:-O2>")
    return()
  endif()

  # Architectures belong to a target, so sources with a minimum are a target of their own; its objects go into the first.
  # Where no architecture is new enough they are compiled for the minimum all the same: never run, but linked.
  set(architectures "${SOROT_CUDA_ARCHITECTURES}")
  set(compiled ${target})
  if(arg_MINIMUM_ARCHITECTURE)
    set(compiled ${target}_sm${arg_MINIMUM_ARCHITECTURE})
    foreach(architecture IN LISTS SOROT_CUDA_ARCHITECTURES)
      string(REGEX MATCH "^[0-9]+" number "${architecture}")
      if(number AND number LESS arg_MINIMUM_ARCHITECTURE)
        list(REMOVE_ITEM architectures ${architecture})
      endif()
    endforeach()
    if(NOT architectures)
      set(architectures ${arg_MINIMUM_ARCHITECTURE}-real)
    endif()
    add_library(${compiled} OBJECT)
    target_include_directories(${compiled} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    get_target_property(position_independent ${target} POSITION_INDEPENDENT_CODE)
    if(position_independent)
      set_target_properties(${compiled} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${compiled}>)
  endif()
  target_sources(${compiled} PRIVATE ${sources})

  # No fused multiply-add but those that kernels ask for: the emulator rounds alike. C++20 by hand and not by the
  # property, because CMake 3.25 does not know that nvcc has it.
  set(flags -std=c++20 -fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow)
  if(SOROT_WERROR)
    list(APPEND flags --Werror=all-warnings -Xcompiler=-Werror -Xptxas=--warning-as-error)
  endif()
  target_compile_options(${compiled} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
  set_property(TARGET ${compiled} PROPERTY CUDA_STANDARD)
  set_target_properties(${compiled} PROPERTIES
    CUDA_ARCHITECTURES "${architectures}"
    CUDA_VISIBILITY_PRESET hidden)
  set_property(TARGET ${target} APPEND PROPERTY SOROT_KERNEL_TARGETS ${compiled})
endfunction()
