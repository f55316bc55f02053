# Installs the library, its headers, a CMake package and a pkg-config file. All of it may be moved afterwards.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sorot)
install(TARGETS sorot EXPORT sorot-targets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/sorot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT sorot-targets NAMESPACE sorot:: DESTINATION ${package_dir})

# A static library leaves it to its users to link the CUDA runtime; a shared one has it inside.
get_target_property(library_type sorot TYPE)
set(dependencies "")
set(pc_cuda_libdir "")
set(pc_cuda_libs "")
if(sorot_cuda STREQUAL "ON" AND library_type STREQUAL "STATIC_LIBRARY")
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  cmake_path(GET cudart PARENT_PATH cuda_libdir)
  set(dependencies "\ninclude(CMakeFindDependencyMacro)\nfind_dependency(CUDAToolkit ${CUDAToolkit_VERSION_MAJOR})\n")
  set(pc_cuda_libdir "cuda_libdir=${cuda_libdir}\n")
  set(pc_cuda_libs " -L\${cuda_libdir} -lcudart_static -ldl -lrt -lpthread")
endif()

# As with the SOVERSION: before 1.0 a minor version may break its users.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sorot-config-version.cmake COMPATIBILITY ${compatibility})
configure_package_config_file(cpu/sorot-config.cmake.in ${PROJECT_BINARY_DIR}/sorot-config.cmake
  INSTALL_DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/sorot-config.cmake ${PROJECT_BINARY_DIR}/sorot-config-version.cmake
  DESTINATION ${package_dir})

# APPEND keeps an absolute CMAKE_INSTALL_LIBDIR as it is, and puts a relative one behind the prefix.
set(pc_libdir "\${prefix}")
set(pc_includedir "\${prefix}")
cmake_path(APPEND pc_libdir ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
configure_file(cpu/sorot.pc.in ${PROJECT_BINARY_DIR}/sorot.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sorot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
