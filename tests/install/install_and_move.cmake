# Installs `build` and moves the result to `prefix`: whatever still points to where it was installed breaks its users.
set(staged ${prefix}-staged)
file(REMOVE_RECURSE ${prefix} ${staged})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --prefix ${staged} COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${staged} ${prefix})

# Headers of include/sorot, the library, its package: nothing else, and no path of this machine in any of them.
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
foreach(file ${installed})
  if(NOT file MATCHES "^(include/sorot/[a-z_/]+\\.h|.*/libsorot\\.(a|so[.0-9]*)|.*/cmake/sorot/.*|.*/pkgconfig/sorot\\.pc)$")
    message(FATAL_ERROR "installs ${file}, which no user needs")
  endif()
  if(file MATCHES "\\.(cmake|pc)$")
    file(STRINGS ${prefix}/${file} paths REGEX "${build}|${staged}")
    if(paths)
      message(FATAL_ERROR "${file} names a path of the build: ${paths}")
    endif()
  endif()
endforeach()
