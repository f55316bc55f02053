# Compiles and runs the consumer with the flags that pkg-config gives for the moved prefix.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE file ${prefix}/*/sorot.pc)
get_filename_component(folder ${file} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})

set(for_static "")
if(linkage STREQUAL "static")
  set(for_static --static)
endif()
execute_process(COMMAND ${pkg_config} --modversion sorot
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${pkg_config} ${for_static} --cflags --libs sorot
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT found VERSION_EQUAL version)
  message(FATAL_ERROR "sorot.pc says version ${found}, expected ${version}")
endif()

separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND ${compiler} -std=c++17 -DEXPECTED_VERSION="${version}" -DEXPECTED_CUDA="${cuda}" ${consumer} -o ${executable} ${flags}
  COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} ${folder}/..)
execute_process(COMMAND ${executable} COMMAND_ERROR_IS_FATAL ANY)
