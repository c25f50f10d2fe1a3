typedef int hc_gateway_placeholder;
