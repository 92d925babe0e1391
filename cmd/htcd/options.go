package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Options are all settings of a daemon. Each field is one flag of htcd run.
type Options struct {
	Kubeconfig  string
	Namespace   string
	Workers     int
	Submitters  int
	Resync      time.Duration
	LeaderElect bool
	LeaseName   string
	Identity    string
	OwnSpace    string // htcd's own namespace
	PodUID      string
	PodName     string

	Data   string
	Ledger string

	Listen           string
	CallbackURL      string
	CallbackCA       string
	CallbackDeadline time.Duration
	HealthListen     string
	OutputListen     string
	PprofListen      string
	TLSCert          string
	TLSKey           string

	ImageRegistry string
	TrustCreator  bool
	FinalizerSet  bool
	Binds         []string
	ShipSender    string
	AllowHTCOpts  []string
	AllowImages   []string
	AllowSchemes  []string
	MaxQueue      int
	MaxOpen       int
	MaxOutput     resource.QuantityValue
	MaxInput      resource.QuantityValue
	KeepFree      resource.QuantityValue
	Fetchers      int
	LogsPodImage  string
	Kueue         bool

	AllowRegistries     []string
	EphemeralRegistries []string

	KinitSecret          string
	KinitSecretNamespace string
	CredentialDir        string
	NamespaceSecrets     bool
	PoolSecrets          []string
	TicketDir            string
	ControlSocket        string
	Krb5Config           string
	Realms               []string

	CondorConfig      string
	CondorBinDir      string
	Pool              string
	Schedd            string
	ScheddCommand     string
	AllowPools        []string
	CommandTimeout    time.Duration
	ReconcileSchedule string
	FullCrosscheck    time.Duration
	ScheddCommands    int
	ScheddRate        float64
	Refresh           time.Duration

	ShutdownTimeout time.Duration
	LogLevel        string
	LogFormat       string
}

// flags binds every option to its flag, with its default and the sentence that explains it.
func (o *Options) flags(f *pflag.FlagSet) {
	setting.Text(f, &o.Kubeconfig, "kubeconfig", "", setting.Path, "kubeconfig `file`; empty: the pod's service account")
	setting.Text(f, &o.Namespace, "namespace", "", setting.Namespace, "the one `namespace` whose HTCJobs are run; empty: all")
	setting.Int(f, &o.Workers, "workers", 4, 1, 1000, "HTCJobs processed in parallel")
	setting.Int(f, &o.Submitters, "submitters", 4, 1, 100, "HTCJobs submitted in parallel at each schedd; as many are looked up, and as many removed")
	setting.Duration(f, &o.Resync, "resync", 10*time.Second, time.Second, year, "how often every HTCJob that has not ended is visited even if nothing has happened")
	setting.Bool(f, &o.LeaderElect, "leader-elect", true, "work only while holding the Lease, so that two htcds never work at once")
	setting.Text(f, &o.LeaseName, "lease-name", "htcd", setting.Object, "`name` of the Lease, in htcd's own namespace")
	setting.Text(f, &o.Identity, "identity", "", holder, "this process's `name` in the Lease; a process that finds its own name there takes the Lease at once, so never give two live processes the same name; empty: made from the host's name, --pod-uid and the process id")
	setting.Text(f, &o.PodUID, "pod-uid", "", setting.Label, "`UID` of htcd's own pod: a container restarted in it takes its Lease back at once, and no other pod does")
	setting.Text(f, &o.PodName, "pod-name", "", setting.Object, "`name` of htcd's own pod, which has the label htc.cern.ch/leads while htcd works, and is ready even when it stands by; empty: no label, and only the active htcd is ready")
	setting.Text(f, &o.OwnSpace, "pod-namespace", "", setting.Namespace, "htcd's own `namespace`; empty: the kubeconfig's, or the pod's")

	setting.Text(f, &o.Data, "data", "/data", setting.Place, "`directory` for data that must outlive htcd")
	setting.Text(f, &o.Ledger, "ledger", "", setting.Place, "the SQLite `file` with every job; empty: sqlite/htcjobs.db under --data")

	setting.Text(f, &o.Listen, "listen", ":8088", setting.Address, "`address` of the receiver, to which jobs send their return codes")
	setting.Text(f, &o.CallbackURL, "callback-url", "", setting.URL(notify.Path), "`URL` at which jobs reach the receiver, such as http://host:port/cloudevents (required)")
	setting.Text(f, &o.CallbackCA, "callback-ca", "", setting.Place, "PEM `file` of the authorities by which jobs check the certificate at --callback-url; sent with every job, read at the start; empty: those that the node trusts")
	setting.Duration(f, &o.CallbackDeadline, "callback-deadline", time.Minute, time.Second, year, "how long a job keeps trying to send its return code")
	setting.Text(f, &o.TLSCert, "tls-cert", "", setting.Place, "PEM `file` with the receiver's certificate, followed by the intermediate ones: the receiver uses https; reloaded when it changes")
	setting.Text(f, &o.TLSKey, "tls-key", "", setting.Place, "PEM `file` with the key of --tls-cert")
	setting.Text(f, &o.OutputListen, "output-listen", "", setting.Address, "`address` at which the apiserver forwards users' requests for their jobs' output; needs deploy/components/output, which sets it; empty: not served")
	setting.Text(f, &o.HealthListen, "health-listen", ":8080", setting.Address, "`address` of /healthz and /readyz, and of /metrics for Prometheus")
	setting.Text(f, &o.PprofListen, "pprof-listen", "", setting.Address, "`address` that serves profiles to go tool pprof, such as :6060, which without a host is loopback only; empty: none")

	setting.Text(f, &o.ImageRegistry, "image-registry", "", imageRegistry, "`host[:port][/path]` put before images that name no registry; empty: the container runtime's default")
	setting.Bool(f, &o.FinalizerSet, "finalizer-at-creation", false, "the apiserver gives new HTCJobs htcd's finalizer, which saves a request for each; set by deploy/components/finalizer, which has it do so")
	setting.Bool(f, &o.TrustCreator, "trust-creator", false, "say in jobs' ads who has created the object (HTCJobCreator), by its annotation htc.cern.ch/creator; set by deploy/components/creator, which protects that")
	setting.List(f, &o.Binds, "binds", []string{"/cvmfs", "/afs", "/eos"}, bind, "`directories` bound into the container if the node has them")
	setting.Text(f, &o.ShipSender, "ship-sender", "", setting.Place, "send this `file`, a static htcd, with every job, for nodes with neither curl nor wget")

	setting.List(f, &o.AllowHTCOpts, "allow-htcopts", nil, allowedOption, "further submit `commands` and +Attributes that htcopts may hold, such as batch_project,+ProjectX; htcd cannot vouch for what they do")

	setting.List(f, &o.AllowSchemes, "allow-url-schemes", []string{"https", "osdf"}, scheme, "`schemes` of the URLs that HTCJobs may name, for which the execute nodes have transfer plugins; empty: no URLs")
	setting.List(f, &o.AllowImages, "allow-images", nil, imagePattern, "`patterns` of the images that may be run, such as docker://registry.example.org/group/*,/cvmfs/unpacked.cern.ch/**; matched with the resolved image; empty: all")
	setting.Int(f, &o.MaxQueue, "max-queue", 0, 0, mostJobs, "most jobs of one HTCJob, and nodes of one HTCWorkflow; 0: only the CRDs' limits")
	setting.Int(f, &o.MaxOpen, "max-open-per-namespace", 0, 0, mostJobs, "most jobs of one namespace that have not ended; further HTCJobs wait until there is room; 0: no limit")

	setting.List(f, &o.AllowRegistries, "allow-registries", nil, registryHost, "`hosts` of the registries that artifacts in spec.inputs may come from and those in spec.outputs go to, and those they redirect to or have their tokens issued by, such as registry.example.org,*.store.example.org:8443; http:// in front of one means without TLS; empty: no artifacts")

	setting.List(f, &o.EphemeralRegistries, "ephemeral-registries", nil, registryHost, "`hosts` of --allow-registries whose content nobody means to keep: what an HTCWorkflow has pushed there is deleted with it, unless its spec.keepArtifacts is true; empty: nothing is deleted from any registry")

	setting.Size(f, &o.MaxOutput, "max-output", "1Gi", "largest `size` of the output of one job, in whole Mi: HTCondor holds a job that leaves more; 0: no limit")
	setting.Size(f, &o.MaxInput, "max-input", "1Gi", "largest `size` of the inputs of one HTCJob, in whole Mi, counted for each job that gets them, as HTCondor copies them for each; 0: no limit")
	setting.Size(f, &o.KeepFree, "keep-free", "0", "`size` that jobs' output leaves free on the volume of --data; 0: a tenth of it, 1Gi at most")
	setting.Int(f, &o.Fetchers, "fetchers", 2, 1, 100, "HTCJobs whose output is fetched in parallel, from each schedd")

	setting.Text(f, &o.LogsPodImage, "logs-pod-image", "", podImage, "htcd's own `image`, for the Pods of spec.logsPod, whose log is the jobs' output; needs deploy/components/logs-pod; empty: no such Pods")
	setting.Bool(f, &o.Kueue, "kueue", false, "HTCJobs with the label kueue.x-k8s.io/queue-name wait for quota of Kueue, where its API is there; needs deploy/components/kueue")

	setting.Text(f, &o.KinitSecret, "kinit-secret", "kinit-secret", setting.Object, "`name` of the Secret with username, and password or keytab; or with only token")
	setting.Text(f, &o.KinitSecretNamespace, "kinit-secret-namespace", "", setting.Namespace, "`namespace` of the Secret; empty: htcd's own")
	setting.Text(f, &o.CredentialDir, "credential-dir", "", setting.Place, "`directory` with the files username, and password or keytab, or with only token, such as an agent of a vault keeps up to date; used instead of the Secret in htcd's namespace; empty: the Secret")
	setting.Bool(f, &o.NamespaceSecrets, "namespace-secrets", false, "HTCJobs of a namespace that has a Secret named as in --kinit-secret run as its account; needs deploy/components/namespace-secrets")
	setting.List(f, &o.PoolSecrets, "pool-secrets", nil, setting.Object, "`names` of further Secrets, in the HTCJob's namespace, that spec.pool.secretName may name; needs --namespace-secrets, whose rules must list them too")
	setting.Text(f, &o.TicketDir, "ticket-dir", "/dev/shm/htcd", setting.Place, "memory-backed `directory` for Kerberos tickets and tokens")
	setting.Text(f, &o.ControlSocket, "control-socket", "", socket, "Unix `socket` on which the active htcd answers htcd reconcile; empty: control.sock in --ticket-dir")
	setting.Text(f, &o.Krb5Config, "krb5-config", "", setting.Place, "krb5.conf `file`; empty: the system's")
	setting.List(f, &o.Realms, "realms", nil, realm, "Kerberos `realms` that the accounts in Secrets may be of, such as EXAMPLE.ORG: htcd asks no KDC of another; empty: default_realm and those in [realms] of krb5.conf")

	setting.Text(f, &o.CondorConfig, "condor-config", "", setting.Place, "HTCondor configuration `file`; empty: the system's")
	setting.Text(f, &o.CondorBinDir, "condor-bin-dir", "", setting.Place, "`directory` of HTCondor's commands; empty: found on PATH")
	setting.Text(f, &o.Pool, "pool", "", setting.HostPort, "collector `host[:port]`, which HTCondor's tools call the pool, and no HTCPool; empty: from HTCondor's configuration")
	setting.Text(f, &o.Schedd, "schedd", "", scheddName, "`name` of the schedd; empty: from --schedd-command or HTCondor's configuration")
	setting.Text(f, &o.ScheddCommand, "schedd-command", "", siteCommand, "a site's `command`, words split at spaces, that prints the schedd for new jobs, such as \"/usr/bin/myschedd show -j\"; run with the account's ticket or token, every 5 minutes and when that schedd does not answer")
	setting.List(f, &o.AllowPools, "allow-pools", nil, endpoint, "`patterns` of the schedds that spec.pool may name: SCHEDD in the usual pool, or COLLECTOR/SCHEDD, where * matches anything; htcd shows them its ticket or token; empty: none")
	setting.Duration(f, &o.CommandTimeout, "command-timeout", time.Minute, time.Second, time.Hour, "deadline of one HTCondor command; condor_submit gets 20 ms more for every proc")
	setting.Text(f, &o.ReconcileSchedule, "reconcile-schedule", "* * * * *", schedule, "cron `schedule` of the cross-check with condor_q and condor_history")
	setting.Int(f, &o.ScheddCommands, "schedd-commands", backend.DefaultPace.Commands, 2, 1000, "commands of HTCondor that run at once at each schedd, at most; fewer while the schedd is busy or answers slowly")
	setting.Float(f, &o.ScheddRate, "schedd-rate", backend.DefaultPace.PerSecond, 1, 1e6, "commands of HTCondor that are begun in a second at each schedd, at most; fewer in the same cases")
	setting.Duration(f, &o.FullCrosscheck, "full-crosscheck", 10*time.Minute, 0, year, "how often the cross-check asks about all jobs, not only about those that have changed; 0: always")
	setting.Duration(f, &o.Refresh, "refresh", 10*time.Second, time.Second, year, "how often condor_q is asked in between which jobs run and which are held; less often if that takes more than 1/20 of the time")

	setting.Duration(f, &o.ShutdownTimeout, "shutdown-timeout", 20*time.Second, time.Second, time.Hour, "how long work in flight may go on after SIGTERM")
	setting.Text(f, &o.LogLevel, "log-level", "info", logger.Level, "debug, info, warn or error")
	setting.Text(f, &o.LogFormat, "log-format", "json", logger.Format, "json or text")
}

// fromEnvironment sets every flag that was not given from HTCD_<FLAG>, dashes as underscores.
func fromEnvironment(f *pflag.FlagSet, getenv func(string) string) error {
	var errs []error
	f.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value := getenv(name)
		if flag.Changed || value == "" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			errs = append(errs, setting.Explain(err, name))
		}
	})
	return errors.Join(errs...)
}

// complete applies the environment to parsed flags.
func (o *Options) complete(f *pflag.FlagSet, environ []string) error {
	if unknown := unknownEnvironment(f, environ); len(unknown) > 0 {
		return fmt.Errorf("%s: no such setting; htcd run --help lists them", strings.Join(unknown, ", "))
	}
	return fromEnvironment(f, lookup(environ))
}

func environmentName(flag string) string {
	return "HTCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// unknownEnvironment returns the HTCD_ variables that match no flag: a misspelt setting must not be ignored. A Service
// called htcd makes Kubernetes set HTCD_SERVICE_HOST, HTCD_PORT and the like in every pod; those are not settings.
func unknownEnvironment(f *pflag.FlagSet, environ []string) []string {
	var unknown []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, "HTCD_")
		if !ours || strings.HasPrefix(rest, "SERVICE_") || rest == "PORT" || strings.HasPrefix(rest, "PORT_") {
			continue
		}
		if f.Lookup(strings.ToLower(strings.ReplaceAll(rest, "_", "-"))) == nil {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// check returns all that flags together, or files that they name, have wrong.
func (o *Options) check() error {
	var missing error
	if o.CallbackURL == "" {
		missing = errors.New("--callback-url is required: without it no job can report its end")
	}
	return errors.Join(missing, o.checkParts())
}

// checkParts is check for commands that send no jobs.
func (o *Options) checkParts() error {
	var wrong []error
	if (o.TLSCert == "") != (o.TLSKey == "") {
		wrong = append(wrong, errors.New("--tls-cert and --tls-key go together: give both or neither"))
	}
	if n := len(o.controlSocket()); n > maxSocketPath {
		wrong = append(wrong, fmt.Errorf("--control-socket %q, which is in --ticket-dir: a socket's path has at most %d bytes, this one has %d", o.controlSocket(), maxSocketPath, n))
	}
	if o.Schedd != "" && o.ScheddCommand != "" {
		wrong = append(wrong, errors.New("--schedd and --schedd-command: give one of them"))
	}
	if len(o.PoolSecrets) > 0 && !o.NamespaceSecrets {
		wrong = append(wrong, errors.New("--pool-secrets: Secrets of namespaces are read with --namespace-secrets only"))
	}
	if o.ShipSender != "" {
		if info, err := os.Stat(o.ShipSender); err != nil || !info.Mode().IsRegular() {
			wrong = append(wrong, fmt.Errorf("--ship-sender %q: want a static htcd binary: no such file", o.ShipSender))
		}
	}
	for _, f := range []struct{ flag, file string }{{"--krb5-config", o.Krb5Config}, {"--condor-config", o.CondorConfig}} {
		if info, err := os.Stat(f.file); f.file != "" && (err != nil || info.IsDir()) {
			wrong = append(wrong, fmt.Errorf("%s %q: no such file", f.flag, f.file))
		}
	}
	if _, _, err := o.callbackCA(); err != nil {
		wrong = append(wrong, fmt.Errorf("--callback-ca: %w", err))
	}
	return errors.Join(wrong...)
}

func (o *Options) ledgerFile() string {
	if o.Ledger != "" {
		return o.Ledger
	}
	return filepath.Join(o.Data, "sqlite", "htcjobs.db")
}

// ownAuthority reports whether htcd makes the receiver's certificate: jobs come by https, and nobody has given one.
func (o *Options) ownAuthority() bool {
	return strings.HasPrefix(o.CallbackURL, "https://") && o.TLSCert == "" && o.CallbackCA == ""
}

// loadOwn makes the authority if there is none yet; only the active htcd may do so.
func (o *Options) loadOwn() (*notify.Own, error) {
	u, err := url.Parse(o.CallbackURL)
	if err != nil {
		return nil, err
	}
	return notify.LoadOwn(o.ownFile(), u.Hostname(), time.Now)
}

func (o *Options) ownFile() string { return filepath.Join(o.Data, "tls", "authority.pem") }

// callbackCA reads the file of --callback-ca. Without one, both results are empty.
func (o *Options) callbackCA() (text string, roots *x509.CertPool, err error) {
	if o.CallbackCA == "" {
		return "", nil, nil
	}
	return notify.Authorities(o.CallbackCA)
}

// maxSocketPath is from unix(7): 108 bytes including the terminating one.
const maxSocketPath = 107

func (o *Options) controlSocket() string {
	if o.ControlSocket != "" {
		return o.ControlSocket
	}
	return filepath.Join(o.TicketDir, "control.sock")
}

func (o *Options) stagingDir() string { return filepath.Join(o.Data, "staging") }

// store is where the output of jobs is kept.
func (o *Options) store() output.Store { return output.Store{Root: filepath.Join(o.Data, "out")} }

// most is the most that each schedd is asked.
func (o Options) most() backend.Pace {
	return backend.Pace{Commands: o.ScheddCommands, PerSecond: o.ScheddRate}
}
