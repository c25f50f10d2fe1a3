# hc_package(NAME SPEC): the library that pkg-config knows by SPEC, as the target PkgConfig::NAME.
#
# What pkg-config says as `-isystem DIR` becomes an include directory at the first configuration and a plain compiler
# option at every later one (FindPkgConfig of CMake 3.25 asks by other ways then): each object of it would be compiled
# anew. Here it is an include directory each time.
function(hc_package name spec)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET GLOBAL ${spec})
  get_target_property(options PkgConfig::${name} INTERFACE_COMPILE_OPTIONS)
  set(left)
  while(options)
    list(POP_FRONT options option)
    if(option STREQUAL "-isystem")
      list(POP_FRONT options folder)
      target_include_directories(PkgConfig::${name} INTERFACE ${folder})
    else()
      list(APPEND left ${option})
    endif()
  endwhile()
  set_target_properties(PkgConfig::${name} PROPERTIES INTERFACE_COMPILE_OPTIONS "${left}")
endfunction()
