/* probes - one function for each wall of hostwalls.h; see probe_fn. */
#ifndef HC_PROBES_H
#define HC_PROBES_H

#include "probe.h"

probe_fn probe_privileges, probe_user_namespace, probe_nested_user_namespace, probe_id_maps,
    probe_pid_namespace, probe_mount_namespace, probe_network_namespace, probe_ipc_namespace,
    probe_uts_namespace, probe_cgroup_namespace, probe_loopback, probe_namespace_listener;
probe_fn probe_overlay, probe_devices, probe_proc, probe_own_root, probe_no_user_namespaces;
probe_fn probe_capabilities, probe_no_new_privs, probe_seccomp, probe_landlock;
probe_fn probe_cgroups, probe_into_cgroup, probe_memory_limit, probe_swap_limit, probe_pids_limit,
    probe_cpu_limit, probe_cgroup_kill, probe_cgroup_freeze;
probe_fn probe_pidfd, probe_open_files, probe_sandbox;
probe_fn probe_disk_home, probe_idmapped_mount;

#endif
