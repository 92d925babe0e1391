package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
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
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty: the pod's service account")
	f.StringVar(&o.Namespace, "namespace", "", "the one `namespace` whose HTCJobs are run; empty: all")
	f.IntVar(&o.Workers, "workers", 4, "HTCJobs processed in parallel")
	f.IntVar(&o.Submitters, "submitters", 4, "HTCJobs submitted in parallel at each schedd; as many are looked up, and as many removed")
	f.DurationVar(&o.Resync, "resync", 10*time.Second, "how often every HTCJob that has not ended is visited even if nothing has happened")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "work only while holding the Lease, so that two htcds never work at once")
	f.StringVar(&o.LeaseName, "lease-name", "htcd", "`name` of the Lease, in htcd's own namespace")
	f.StringVar(&o.Identity, "identity", "", "this process's `name` in the Lease; a process that finds its own name there takes the Lease at once, so never give two live processes the same name; empty: made from the host's name, --pod-uid and the process id")
	f.StringVar(&o.PodUID, "pod-uid", "", "`UID` of htcd's own pod: a container restarted in it takes its Lease back at once, and no other pod does")
	f.StringVar(&o.PodName, "pod-name", "", "`name` of htcd's own pod, which has the label htc.cern.ch/leads while htcd works, and is ready even when it stands by; empty: no label, and only the active htcd is ready")
	f.StringVar(&o.OwnSpace, "pod-namespace", "", "htcd's own `namespace`; empty: the kubeconfig's, or the pod's")

	f.StringVar(&o.Data, "data", "/data", "`directory` for data that must outlive htcd")
	f.StringVar(&o.Ledger, "ledger", "", "the SQLite `file` with every job; empty: sqlite/htcjobs.db under --data")

	f.StringVar(&o.Listen, "listen", ":8088", "`address` of the receiver, to which jobs send their return codes")
	f.StringVar(&o.CallbackURL, "callback-url", "", "`URL` at which jobs reach the receiver, such as http://host:port/cloudevents (required)")
	f.StringVar(&o.CallbackCA, "callback-ca", "", "PEM `file` of the authorities by which jobs check the certificate at --callback-url; sent with every job, read at the start; empty: those that the node trusts")
	f.DurationVar(&o.CallbackDeadline, "callback-deadline", time.Minute, "how long a job keeps trying to send its return code")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM `file` with the receiver's certificate, followed by the intermediate ones: the receiver uses https; reloaded when it changes")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM `file` with the key of --tls-cert")
	f.StringVar(&o.OutputListen, "output-listen", "", "`address` at which the apiserver forwards users' requests for their jobs' output; needs deploy/components/output, which sets it; empty: not served")
	f.StringVar(&o.HealthListen, "health-listen", ":8080", "`address` of /healthz and /readyz, and of /metrics for Prometheus")
	f.StringVar(&o.PprofListen, "pprof-listen", "", "`address` that serves profiles to go tool pprof, such as :6060, which without a host is loopback only; empty: none")

	f.StringVar(&o.ImageRegistry, "image-registry", "", "`host[:port][/path]` put before images that name no registry; empty: the container runtime's default")
	f.BoolVar(&o.FinalizerSet, "finalizer-at-creation", false, "the apiserver gives new HTCJobs htcd's finalizer, which saves a request for each; set by deploy/components/finalizer, which has it do so")
	f.BoolVar(&o.TrustCreator, "trust-creator", false, "say in jobs' ads who has created the object (HTCJobCreator), by its annotation htc.cern.ch/creator; set by deploy/components/creator, which protects that")
	f.StringSliceVar(&o.Binds, "binds", []string{"/cvmfs", "/afs", "/eos"}, "`directories` bound into the container if the node has them")
	f.StringVar(&o.ShipSender, "ship-sender", "", "send this `file`, a static htcd, with every job, for nodes with neither curl nor wget")

	f.StringSliceVar(&o.AllowHTCOpts, "allow-htcopts", nil, "further submit `commands` and +Attributes that htcopts may hold, such as batch_project,+ProjectX; htcd cannot vouch for what they do")

	f.StringSliceVar(&o.AllowSchemes, "allow-url-schemes", []string{"https", "osdf"}, "`schemes` of the URLs that HTCJobs may name, for which the execute nodes have transfer plugins; empty: no URLs")
	f.StringSliceVar(&o.AllowImages, "allow-images", nil, "`patterns` of the images that may be run, such as docker://registry.example.org/group/*,/cvmfs/unpacked.cern.ch/**; matched with the resolved image; empty: all")
	f.IntVar(&o.MaxQueue, "max-queue", 0, "most jobs of one HTCJob, and nodes of one HTCWorkflow; 0: only the CRDs' limits")
	f.IntVar(&o.MaxOpen, "max-open-per-namespace", 0, "most jobs of one namespace that have not ended; further HTCJobs wait until there is room; 0: no limit")

	f.StringSliceVar(&o.AllowRegistries, "allow-registries", nil, "`hosts` of the registries that artifacts in spec.inputs may come from and those in spec.outputs go to, and those they redirect to or have their tokens issued by, such as registry.example.org,*.store.example.org:8443; http:// in front of one means without TLS; empty: no artifacts")

	f.StringSliceVar(&o.EphemeralRegistries, "ephemeral-registries", nil, "`hosts` of --allow-registries whose content nobody means to keep: what an HTCWorkflow has pushed there is deleted with it, unless its spec.keepArtifacts is true; empty: nothing is deleted from any registry")

	o.MaxOutput.Quantity = resource.MustParse("1Gi")
	f.Var(&o.MaxOutput, "max-output", "largest `size` of the output of one job, in whole Mi: HTCondor holds a job that leaves more; 0: no limit")
	o.MaxInput.Quantity = resource.MustParse("1Gi")
	f.Var(&o.MaxInput, "max-input", "largest `size` of the inputs of one HTCJob, in whole Mi, counted for each job that gets them, as HTCondor copies them for each; 0: no limit")
	f.Var(&o.KeepFree, "keep-free", "`size` that jobs' output leaves free on the volume of --data; 0: a tenth of it, 1Gi at most")
	f.IntVar(&o.Fetchers, "fetchers", 2, "HTCJobs whose output is fetched in parallel, from each schedd")

	f.StringVar(&o.LogsPodImage, "logs-pod-image", "", "htcd's own `image`, for the Pods of spec.logsPod, whose log is the jobs' output; needs deploy/components/logs-pod; empty: no such Pods")
	f.BoolVar(&o.Kueue, "kueue", false, "HTCJobs with the label kueue.x-k8s.io/queue-name wait for quota of Kueue, where its API is there; needs deploy/components/kueue")

	f.StringVar(&o.KinitSecret, "kinit-secret", "kinit-secret", "`name` of the Secret with username, and password or keytab; or with only token")
	f.StringVar(&o.KinitSecretNamespace, "kinit-secret-namespace", "", "`namespace` of the Secret; empty: htcd's own")
	f.StringVar(&o.CredentialDir, "credential-dir", "", "`directory` with the files username, and password or keytab, or with only token, such as an agent of a vault keeps up to date; used instead of the Secret in htcd's namespace; empty: the Secret")
	f.BoolVar(&o.NamespaceSecrets, "namespace-secrets", false, "HTCJobs of a namespace that has a Secret named as in --kinit-secret run as its account; needs deploy/components/namespace-secrets")
	f.StringSliceVar(&o.PoolSecrets, "pool-secrets", nil, "`names` of further Secrets, in the HTCJob's namespace, that spec.pool.secretName may name; needs --namespace-secrets, whose rules must list them too")
	f.StringVar(&o.TicketDir, "ticket-dir", "/dev/shm/htcd", "memory-backed `directory` for Kerberos tickets and tokens")
	f.StringVar(&o.ControlSocket, "control-socket", "", "Unix `socket` on which the active htcd answers htcd reconcile; empty: control.sock in --ticket-dir")
	f.StringVar(&o.Krb5Config, "krb5-config", "", "krb5.conf `file`; empty: the system's")
	f.StringSliceVar(&o.Realms, "realms", nil, "Kerberos `realms` that the accounts in Secrets may be of, such as EXAMPLE.ORG: htcd asks no KDC of another; empty: default_realm and those in [realms] of krb5.conf")

	f.StringVar(&o.CondorConfig, "condor-config", "", "HTCondor configuration `file`; empty: the system's")
	f.StringVar(&o.CondorBinDir, "condor-bin-dir", "", "`directory` of HTCondor's commands; empty: found on PATH")
	f.StringVar(&o.Pool, "pool", "", "collector `host[:port]`, which HTCondor's tools call the pool, and no HTCPool; empty: from HTCondor's configuration")
	f.StringVar(&o.Schedd, "schedd", "", "`name` of the schedd; empty: from --schedd-command or HTCondor's configuration")
	f.StringVar(&o.ScheddCommand, "schedd-command", "", "a site's `command`, words split at spaces, that prints the schedd for new jobs, such as \"/usr/bin/myschedd show -j\"; run with the account's ticket or token, every 5 minutes and when that schedd does not answer")
	f.StringSliceVar(&o.AllowPools, "allow-pools", nil, "`patterns` of the schedds that spec.pool may name: SCHEDD in the usual pool, or COLLECTOR/SCHEDD, where * matches anything; htcd shows them its ticket or token; empty: none")
	f.DurationVar(&o.CommandTimeout, "command-timeout", time.Minute, "deadline of one HTCondor command; condor_submit gets 20 ms more for every proc")
	f.StringVar(&o.ReconcileSchedule, "reconcile-schedule", "* * * * *", "cron `schedule` of the cross-check with condor_q and condor_history")
	f.IntVar(&o.ScheddCommands, "schedd-commands", backend.DefaultPace.Commands, "commands of HTCondor that run at once at each schedd, at most; fewer while the schedd is busy or answers slowly")
	f.Float64Var(&o.ScheddRate, "schedd-rate", backend.DefaultPace.PerSecond, "commands of HTCondor that are begun in a second at each schedd, at most; fewer in the same cases")
	f.DurationVar(&o.FullCrosscheck, "full-crosscheck", 10*time.Minute, "how often the cross-check asks about all jobs, not only about those that have changed; 0: always")
	f.DurationVar(&o.Refresh, "refresh", 10*time.Second, "how often condor_q is asked in between which jobs run and which are held; less often if that takes more than 1/20 of the time")

	f.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", 20*time.Second, "how long work in flight may go on after SIGTERM")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", "json", "json or text")
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
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
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

func (o *Options) checkCallback() error {
	if o.CallbackURL == "" {
		return errors.New("--callback-url is required: without it no job can report its end")
	}
	u, err := url.Parse(o.CallbackURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--callback-url %q: want http://host:port/cloudevents or https://", o.CallbackURL)
	}
	return nil
}

// check returns what is wrong with the options, in words that name the flag.
func (o *Options) check() error {
	if err := o.checkCallback(); err != nil {
		return err
	}
	return o.checkParts()
}

// checkParts is check for commands that send no jobs.
func (o *Options) checkParts() error {
	if _, _, err := net.SplitHostPort(o.PprofListen); err != nil && o.PprofListen != "" {
		return fmt.Errorf("--pprof-listen %q: want host:port or :port", o.PprofListen)
	}
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return fmt.Errorf("--namespace %q is not a namespace's name", o.Namespace)
	}
	for _, f := range []struct{ flag, address string }{{"--listen", o.Listen}, {"--health-listen", o.HealthListen}, {"--output-listen", o.OutputListen}} {
		if f.address == "" && f.flag == "--output-listen" {
			continue
		}
		if _, _, err := net.SplitHostPort(f.address); err != nil {
			return fmt.Errorf("%s %q: want host:port or :port", f.flag, f.address)
		}
	}
	for _, f := range []struct {
		flag string
		n    int
	}{{"--workers", o.Workers}, {"--submitters", o.Submitters}, {"--fetchers", o.Fetchers}} {
		if f.n < 1 {
			return fmt.Errorf("%s %d: want 1 or more", f.flag, f.n)
		}
	}
	for _, f := range []struct {
		flag string
		d    time.Duration
	}{
		{"--resync", o.Resync}, {"--refresh", o.Refresh}, {"--command-timeout", o.CommandTimeout},
		{"--callback-deadline", o.CallbackDeadline}, {"--shutdown-timeout", o.ShutdownTimeout},
	} {
		if f.d < time.Second {
			return fmt.Errorf("%s %s: want 1s or more", f.flag, f.d)
		}
	}
	if !o.most().Valid() {
		return fmt.Errorf("--schedd-commands %d, --schedd-rate %g: want 2 or more, and 1 to 1e6", o.ScheddCommands, o.ScheddRate)
	}
	if o.FullCrosscheck < 0 {
		return fmt.Errorf("--full-crosscheck %s: want 0 or more", o.FullCrosscheck)
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together: give both or neither")
	}
	for _, f := range []struct{ flag, path string }{
		{"--data", o.Data}, {"--ledger", o.Ledger}, {"--ticket-dir", o.TicketDir}, {"--ship-sender", o.ShipSender}, {"--credential-dir", o.CredentialDir},
		{"--control-socket", o.ControlSocket}, {"--tls-cert", o.TLSCert}, {"--tls-key", o.TLSKey}, {"--callback-ca", o.CallbackCA},
	} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			return fmt.Errorf("%s %q: want an absolute path", f.flag, f.path)
		}
	}
	for _, bind := range o.Binds {
		if !filepath.IsAbs(bind) || strings.ContainsAny(bind, " \t\n'\",:\\") {
			return fmt.Errorf("--binds %q: want absolute paths without spaces, quotes, commas or colons", bind)
		}
	}
	if n := len(o.controlSocket()); n > maxSocketPath {
		return fmt.Errorf("--control-socket %q: a socket's path has at most %d bytes, this one has %d", o.controlSocket(), maxSocketPath, n)
	}
	if err := schedd.CheckAllow(o.AllowHTCOpts); err != nil {
		return fmt.Errorf("--allow-htcopts: %w", err)
	}
	if _, err := artifact.ParseRegistries(o.AllowRegistries); err != nil {
		return fmt.Errorf("--allow-registries: %w", err)
	}
	if _, err := artifact.ParseRegistries(o.EphemeralRegistries); err != nil {
		return fmt.Errorf("--ephemeral-registries: %w", err)
	}
	if err := schedd.CheckSchemes(o.AllowSchemes); err != nil {
		return fmt.Errorf("--allow-url-schemes: %w", err)
	}
	if err := schedd.CheckImagePatterns(o.AllowImages); err != nil {
		return fmt.Errorf("--allow-images: %w", err)
	}
	for _, realm := range o.Realms {
		if realm == "" || strings.ContainsAny(realm, "@/\\ \t\n") {
			return fmt.Errorf("--realms %q: want realms such as EXAMPLE.ORG, with commas between", realm)
		}
	}
	if err := o.checkPools(); err != nil {
		return err
	}
	for _, f := range []struct {
		flag string
		n    int
	}{{"--max-queue", o.MaxQueue}, {"--max-open-per-namespace", o.MaxOpen}} {
		if f.n < 0 {
			return fmt.Errorf("%s %d: want 0, for no limit, or more", f.flag, f.n)
		}
	}
	for _, f := range []struct {
		flag string
		size resource.QuantityValue
	}{{"--max-output", o.MaxOutput}, {"--max-input", o.MaxInput}, {"--keep-free", o.KeepFree}} {
		if f.size.Sign() < 0 || f.size.Value()>>20<<20 != f.size.Value() {
			return fmt.Errorf("%s %s: want 0 or more, in whole Mi, such as 500Mi or 2Gi", f.flag, f.size.String())
		}
	}
	if o.ShipSender != "" {
		if info, err := os.Stat(o.ShipSender); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("--ship-sender %q: want a static htcd binary: no such file", o.ShipSender)
		}
	}
	if _, _, err := o.callbackCA(); err != nil {
		return fmt.Errorf("--callback-ca: %w", err)
	}
	if _, err := cron.ParseStandard(o.ReconcileSchedule); err != nil {
		return fmt.Errorf("--reconcile-schedule %q: %w", o.ReconcileSchedule, err)
	}
	return nil
}

// checkPools is the part of checkParts that concerns where jobs go.
func (o *Options) checkPools() error {
	if o.ScheddCommand != "" {
		words := strings.Fields(o.ScheddCommand)
		switch {
		case o.Schedd != "":
			return errors.New("--schedd and --schedd-command: give one of them")
		case len(words) == 0 || !filepath.IsAbs(words[0]):
			return fmt.Errorf("--schedd-command %q: want an absolute path, and arguments", o.ScheddCommand)
		}
	}
	if err := schedd.CheckEndpointPatterns(o.AllowPools); err != nil {
		return fmt.Errorf("--allow-pools: %w", err)
	}
	if len(o.PoolSecrets) > 0 && !o.NamespaceSecrets {
		return errors.New("--pool-secrets: Secrets of namespaces are read with --namespace-secrets only")
	}
	for _, name := range o.PoolSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--pool-secrets: %q is not a Secret's name", name)
		}
	}
	return nil
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
