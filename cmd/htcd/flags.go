package main

import (
	"time"

	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/target/backend"
)

// flags binds every option to its flag, with its default and the sentence that explains it.
func flags(o *daemon.Options, f *pflag.FlagSet) {
	o.Version = version
	setting.Text(f, &o.Kubeconfig, "kubeconfig", "", setting.Path,
		"kubeconfig `file`; empty: the pod's service account")
	setting.Text(f, &o.Namespace, "namespace", "", setting.Namespace,
		"the one `namespace` whose HTCJobs are run; empty: all")
	setting.Int(f, &o.Workers, "workers", 4, 1, 1000, "HTCJobs processed in parallel")
	setting.Int(f, &o.Submitters, "submitters", 4, 1, 100,
		"HTCJobs submitted in parallel at each schedd; as many are looked up, and as many removed")
	setting.Duration(f, &o.Resync, "resync", 10*time.Second, time.Second, operator.Year,
		"how often every HTCJob that has not ended is visited even if nothing has happened")
	setting.Bool(f, &o.LeaderElect, "leader-elect", true,
		"work only while holding the Lease, so that two htcds never work at once")
	setting.Text(f, &o.LeaseName, "lease-name", "htcd", setting.Object, "`name` of the Lease, in htcd's own namespace")
	setting.Text(f, &o.Identity, "identity", "", operator.Holder,
		"this process's `name` in the Lease; a process that finds its own name there takes the Lease at once, so never give two live processes the same name; empty: made from the host's name, --pod-uid and the process id")
	setting.Text(f, &o.PodUID, "pod-uid", "", setting.Label,
		"`UID` of htcd's own pod: a container restarted in it takes its Lease back at once, and no other pod does")
	setting.Text(f, &o.PodName, "pod-name", "", setting.Object,
		"`name` of htcd's own pod, which has the label htc.cern.ch/leads while htcd works, and is ready even when it stands by; empty: no label, and only the active htcd is ready")
	setting.Text(f, &o.OwnSpace, "pod-namespace", "", setting.Namespace,
		"htcd's own `namespace`; empty: the kubeconfig's, or the pod's")

	setting.Text(f, &o.Data, "data", "/data", setting.Place, "`directory` for data that must outlive htcd")
	setting.Text(f, &o.Ledger, "ledger", "", setting.Place,
		"the SQLite `file` with every job; empty: sqlite/htcjobs.db under --data")

	setting.Text(f, &o.Listen, "listen", ":8088", setting.Address,
		"`address` of the receiver, to which jobs send their return codes")
	setting.Text(f, &o.CallbackURL, "callback-url", "", setting.URL(notify.Path),
		"`URL` at which jobs reach the receiver, such as http://host:port/cloudevents (required)")
	setting.Text(f, &o.CallbackCA, "callback-ca", "", setting.Place,
		"PEM `file` of the authorities by which jobs check the certificate at --callback-url; sent with every job, read at the start; empty: those that the node trusts")
	setting.Duration(f, &o.CallbackDeadline, "callback-deadline", time.Minute, time.Second, operator.Year,
		"how long a job keeps trying to send its return code")
	setting.Bool(f, &o.CallbackStart, "callback-start", true,
		"jobs tell the receiver when they start, too, once and without waiting for it; false: a start is known up to --refresh later")
	setting.Text(f, &o.TLSCert, "tls-cert", "", setting.Place,
		"PEM `file` with the receiver's certificate, followed by the intermediate ones: the receiver uses https; reloaded when it changes")
	setting.Text(f, &o.TLSKey, "tls-key", "", setting.Place, "PEM `file` with the key of --tls-cert")
	setting.Text(f, &o.OutputListen, "output-listen", "", setting.Address,
		"`address` at which the apiserver forwards users' requests for their jobs' output; needs deploy/components/output, which sets it; empty: not served")
	setting.Text(f, &o.HealthListen, "health-listen", ":8080", setting.Address,
		"`address` of /healthz and /readyz, and of /metrics for Prometheus")
	setting.Text(f, &o.PprofListen, "pprof-listen", "", setting.Address,
		"`address` that serves profiles to go tool pprof, such as :6060, which without a host is loopback only; empty: none")

	setting.Text(f, &o.Traces, "traces", "", setting.URL(traces.Path),
		"`URL` at which a collector of OpenTelemetry takes traces (OTLP over HTTP), such as http://collector:4318/v1/traces; empty: there are none")

	setting.Text(f, &o.ImageRegistry, "image-registry", "", operator.ImageRegistry,
		"`host[:port][/path]` put before images that name no registry; empty: the container runtime's default")
	setting.Bool(f, &o.FinalizerSet, "finalizer-at-creation", false,
		"the apiserver gives new HTCJobs htcd's finalizer, which saves a request for each; set by deploy/components/finalizer, which has it do so")
	setting.Bool(f, &o.TrustCreator, "trust-creator", false,
		"say in jobs' ads who has created the object (HTCJobCreator), by its annotation htc.cern.ch/creator; set by deploy/components/creator, which protects that")
	setting.List(f, &o.Binds, "binds", []string{"/cvmfs", "/afs", "/eos"}, operator.Bind,
		"`directories` bound into the container if the node has them")
	setting.Text(f, &o.ShipSender, "ship-sender", "", setting.Place,
		"send this `file`, a static htcd, with every job, for nodes with neither curl nor wget")

	setting.List(f, &o.AllowHTCOpts, "allow-htcopts", nil, operator.AllowedOption,
		"further submit `commands` and +Attributes that htcopts may hold, such as batch_project,+ProjectX; htcd cannot vouch for what they do")

	setting.List(f, &o.Attributes, "attributes", nil, operator.Attribute,
		"`patterns` of +Attributes that htcopts may hold, such as Lab*, or * for all; they allow none of those that HTCondor or htcd act upon")

	setting.List(f, &o.AllowSchemes, "allow-url-schemes", []string{"https", "osdf"}, operator.Scheme,
		"`schemes` of the URLs that HTCJobs may name, for which the execute nodes have transfer plugins; empty: no URLs")
	setting.List(f, &o.AllowImages, "allow-images", nil, operator.ImagePattern,
		"`patterns` of the images that may be run, such as docker://registry.example.org/group/*,/cvmfs/unpacked.cern.ch/**; matched with the resolved image; empty: all")
	setting.Bool(f, &o.WritableRoot, "allow-writable-root", false,
		"scripts may have script.writableRoot, for which the execute nodes need overlays in user namespaces, or apptainer as setuid root")
	setting.Int(f, &o.MaxQueue, "max-queue", 0, 0, operator.MostJobs,
		"most jobs of one HTCJob, and nodes of one HTCWorkflow; 0: only the CRDs' limits")
	setting.Int(f, &o.FactoryAbove, "factory-above", 1000, 0, operator.MostJobs,
		"an HTCJob of more jobs, or a step of more nodes that is alone in its level, is made by a factory on the schedd's host, as with spec.parallelism, so that at most 1,000 of the jobs wait in the queue; 0: only with spec.parallelism")
	setting.Int(f, &o.MaxOpen, "max-open-per-namespace", 0, 0, operator.MostJobs,
		"most jobs of one namespace that have not ended; further HTCJobs wait until there is room; 0: no limit")

	setting.List(f, &o.AllowRegistries, "allow-registries", nil, operator.RegistryHost,
		"`hosts` of the registries that artifacts in spec.inputs may come from and those in spec.outputs go to, and those they redirect to or have their tokens issued by, such as registry.example.org,*.store.example.org:8443; http:// in front of one means without TLS; empty: no artifacts")

	setting.List(f, &o.EphemeralRegistries, "ephemeral-registries", nil, operator.RegistryHost,
		"`hosts` of --allow-registries whose content nobody means to keep: what an HTCWorkflow has pushed there is deleted with it, unless its spec.keepArtifacts is true; empty: nothing is deleted from any registry")

	setting.Size(f, &o.MaxOutput, "max-output", "1Gi",
		"largest `size` of the output of one job, in whole Mi: HTCondor holds a job that leaves more; 0: no limit")
	setting.Size(f, &o.MaxInput, "max-input", "1Gi",
		"largest `size` of the inputs of one HTCJob, in whole Mi, counted for each job that gets them, as HTCondor copies them for each; 0: no limit")
	setting.Size(f, &o.KeepFree, "keep-free", "0",
		"`size` that jobs' output leaves free on the volume of --data; 0: a tenth of it, 1Gi at most")
	setting.Size(f, &o.UploadQuota, "upload-quota", "20Gi",
		"`size` of the files that users of one namespace may have uploaded, in whole Mi; 0: no limit")
	setting.Int(f, &o.UploadFiles, "upload-files", 10_000, 0, operator.MostJobs,
		"how many files these may be; 0: no limit")
	setting.Int(f, &o.Fetchers, "fetchers", 2, 1, 100,
		"HTCJobs whose output is fetched in parallel, from each schedd; and one of a namespace that has none among them")

	setting.Text(f, &o.LogsPodImage, "logs-pod-image", "", operator.PodImage,
		"htcd's own `image`, for the Pods of spec.logsPod, whose log is the jobs' output; needs deploy/components/logs-pod; empty: no such Pods")
	setting.Bool(f, &o.Kueue, "kueue", false,
		"HTCJobs and HTCWorkflows with the label kueue.x-k8s.io/queue-name wait for quota of Kueue, where its API is there; needs deploy/components/kueue")

	setting.Text(f, &o.KinitSecret, "kinit-secret", "kinit-secret", setting.Object,
		"`name` of the Secret with username, and password or keytab; or with only token")
	setting.Text(f, &o.KinitSecretNamespace, "kinit-secret-namespace", "", setting.Namespace,
		"`namespace` of the Secret; empty: htcd's own")
	setting.Text(f, &o.CredentialDir, "credential-dir", "", setting.Place,
		"`directory` with the files username, and password or keytab, or with only token, such as an agent of a vault keeps up to date; used instead of the Secret in htcd's namespace; empty: the Secret")
	setting.Bool(f, &o.NamespaceSecrets, "namespace-secrets", false,
		"HTCJobs of a namespace that has a Secret named as in --kinit-secret run as its account; needs deploy/components/namespace-secrets")
	setting.List(f, &o.PoolSecrets, "pool-secrets", nil, setting.Object,
		"`names` of further Secrets, in the HTCJob's namespace, that spec.pool.secretName may name; needs --namespace-secrets, whose rules must list them too")
	setting.Text(f, &o.TicketDir, "ticket-dir", "/dev/shm/htcd", setting.Place,
		"memory-backed `directory` for Kerberos tickets and tokens")
	setting.Text(f, &o.ControlSocket, "control-socket", "", operator.Socket,
		"Unix `socket` on which the active htcd answers htcd reconcile; empty: control.sock in --ticket-dir")
	setting.Text(f, &o.Krb5Config, "krb5-config", "", setting.Place, "krb5.conf `file`; empty: the system's")
	setting.List(f, &o.Realms, "realms", nil, operator.Realm,
		"Kerberos `realms` that the accounts in Secrets may be of, such as EXAMPLE.ORG: htcd asks no KDC of another; empty: default_realm and those in [realms] of krb5.conf")

	setting.Text(f, &o.CondorConfig, "condor-config", "", setting.Place,
		"HTCondor configuration `file`; empty: the system's")
	setting.Text(f, &o.CondorBinDir, "condor-bin-dir", "", setting.Place,
		"`directory` of HTCondor's commands; empty: found on PATH")
	setting.Text(f, &o.Collector, "collector", "", setting.HostPort,
		"`host[:port]` of the collector that knows the schedds; empty: from HTCondor's configuration")
	setting.Former(f, "pool", "collector")
	setting.Text(f, &o.Schedd, "schedd", "", operator.ScheddName,
		"`name` of the schedd; empty: from --schedd-command or HTCondor's configuration")
	setting.Text(f, &o.ScheddCommand, "schedd-command", "", operator.SiteCommand,
		"a site's `command`, words split at spaces, that prints the schedd for new jobs, such as \"/usr/bin/myschedd show -j\"; run with the account's ticket or token, every 5 minutes and when that schedd does not answer")
	setting.List(f, &o.AllowPools, "allow-pools", nil, operator.Endpoint,
		"`patterns` of the schedds that spec.pool may name: SCHEDD in the usual pool, or COLLECTOR/SCHEDD, where * matches anything; htcd shows them its ticket or token; empty: none")
	setting.Duration(f, &o.CommandTimeout, "command-timeout", time.Minute, time.Second, time.Hour,
		"deadline of one HTCondor command; condor_submit gets 20 ms more for every proc")
	setting.Text(f, &o.ReconcileSchedule, "reconcile-schedule", "* * * * *", operator.Schedule,
		"cron `schedule` of the cross-check with condor_q and condor_history")
	setting.Int(f, &o.ScheddCommands, "schedd-commands", backend.DefaultPace.Commands, 2, 1000,
		"commands of HTCondor that run at once at each schedd, at most; fewer while the schedd is busy or answers slowly")
	setting.Float(f, &o.ScheddRate, "schedd-rate", backend.DefaultPace.PerSecond, 1, 1e6,
		"commands of HTCondor that are begun in a second at each schedd, at most; fewer in the same cases")
	setting.Duration(f, &o.FullCrosscheck, "full-crosscheck", 10*time.Minute, 0, operator.Year,
		"how often the cross-check asks about all jobs, not only about those that have changed; 0: always")
	setting.List(f, &o.Feeds, "feed", nil, operator.Feed,
		"`feeds` of schedds (htcd feed), each as SCHEDD=https://host:port, or COLLECTOR/SCHEDD=... for another pool: while one works, the cross-check reads it instead of running condor_q and condor_history; empty: none")
	setting.Text(f, &o.FeedCA, "feed-ca", "", setting.Place,
		"PEM `file` of the authorities that have signed the feeds' certificates; read at the start")
	setting.Text(f, &o.FeedCert, "feed-cert", "", setting.Place,
		"PEM `file` with the certificate that htcd shows to feeds; reloaded when it changes")
	setting.Text(f, &o.FeedKey, "feed-key", "", setting.Place, "PEM `file` with the key of --feed-cert")
	setting.Duration(f, &o.Refresh, "refresh", 10*time.Second, time.Second, operator.Year,
		"how often condor_q is asked in between which jobs run and which are held; less often if that takes more than 1/20 of the time")

	setting.Duration(f, &o.HistoryKept, "history-kept", 90*24*time.Hour, 0, 10*operator.Year,
		"how long what was deleted stays in the history; 0: it does not")
	setting.Duration(f, &o.ShutdownTimeout, "shutdown-timeout", 20*time.Second, time.Second, time.Hour,
		"how long work in flight may go on after SIGTERM")
	logger.Flags(f, &o.LogLevel, &o.LogFormat, "json")
}
