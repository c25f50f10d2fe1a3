/* placeholder */
typedef int hc_sandbox_placeholder;
