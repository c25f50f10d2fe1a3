# Warnings and hardening of every target (docs/HACKING.md).
add_library(hc_flags INTERFACE)
target_compile_options(hc_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wpointer-arith
  -Wvla -Wimplicit-fallthrough -Wformat=2 -fstack-protector-strong -fno-omit-frame-pointer)
target_compile_definitions(hc_flags INTERFACE _GNU_SOURCE)
target_link_options(hc_flags INTERFACE -Wl,-z,relro,-z,now)
if(HOLDCELL_WERROR)
  target_compile_options(hc_flags INTERFACE -Werror)
endif()
if(HOLDCELL_SANITIZE)
  target_compile_options(hc_flags INTERFACE -fsanitize=${HOLDCELL_SANITIZE} -fno-sanitize-recover=undefined)
  target_link_options(hc_flags INTERFACE -fsanitize=${HOLDCELL_SANITIZE})
elseif(CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo")
  target_compile_options(hc_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
