"""Verification: evidence is collected, pure checks turn it into findings, findings into reports.

How evidence flows, in the order of a run (`runner.verify`; of Docker hosts
`gpuboot.docker.docker_runner`):

1. Hosts: `deploys/parts/driver/nvidia_fact.sh` -> `gpu_state` (with `mig_devices`) ->
   `devices.Host`.
2. The lock (`lease`) and a namespace (`session`); the cluster's nodes and pods (`gpuboot.cluster`)
   and kubelets that report (`heartbeat`) -> `Node`, `Pod`.
3. `workload` runs vectorAdd on each free GPU -> `WorkloadResult`; `service_probe` tries DNS and a
   Service on each node -> `ServiceProbeResult`.
4. Meanwhile `collector` reads exporters, and `prometheus` and Alertmanager -> `Metrics`, again and
   again until the metric checks pass or the time is up. `http_reader` reads a Prometheus outside of
   any cluster.
   At the level quick there are no pods; at the level deep `deep` tests nodes after all this.
5. All of it is one `evidence.Evidence`. `checks.proof_chain.evaluate` hands it to the checks, a
   module for each group of links: `operating_system`, `kubernetes_checks` (with `layout_checks`),
   `exporter_checks`, `field_checks`, `metrics_checks`, `attribution`, `service_checks`,
   `monitoring_checks`, `monitoring_objects`; `checks.links` lists the links.
6. Each check returns `findings.Finding`s, built by a `FindingBuilder`: status, detail and remedy.
7. `report.build` makes a `Report` of them: `report.cases` groups what follows from one cause;
   `report_terminal`, `html`, `junit` and `writer` show and write it. `firing_alerts` stand beside.
"""
