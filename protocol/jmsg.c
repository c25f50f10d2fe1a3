/* placeholder */
typedef int hc_jmsg_placeholder;
