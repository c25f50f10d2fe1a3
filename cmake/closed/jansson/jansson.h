/* Found in the place of the real one by every target that may not speak it (hc_closed() in cmake/modules.cmake). */
#error "jansson.h is not for this folder: docs/ARCHITECTURE.md, Layout"
