# Warnings and hardening of every target (docs/HACKING.md).
add_library(hc_flags INTERFACE)
target_compile_options(hc_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wpointer-arith
  -Wvla -Wimplicit-fallthrough -Wformat=2 -fstack-protector-strong -fno-omit-frame-pointer)
target_compile_definitions(hc_flags INTERFACE _GNU_SOURCE)
target_link_options(hc_flags INTERFACE -Wl,-z,relro,-z,now)
# sandbox/self/walls.h: who may leave walls out builds for tests, and for nothing else.
if(HOLDCELL_TEST_WALLS)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
    message(FATAL_ERROR "HOLDCELL_TEST_WALLS is for Debug builds: what can be told to leave its walls out is never shipped")
  endif()
  target_compile_definitions(hc_flags INTERFACE HC_TEST_WALLS)
  install(CODE "message(FATAL_ERROR \"this is a test build (HOLDCELL_TEST_WALLS): its walls can be left out\")")
endif()
if(HOLDCELL_WERROR)
  target_compile_options(hc_flags INTERFACE -Werror)
endif()
if(HOLDCELL_SANITIZE)
  target_compile_options(hc_flags INTERFACE -fsanitize=${HOLDCELL_SANITIZE} -fno-sanitize-recover=undefined)
  target_link_options(hc_flags INTERFACE -fsanitize=${HOLDCELL_SANITIZE})
elseif(CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo")
  target_compile_options(hc_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
