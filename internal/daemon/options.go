package daemon

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/serve/control"
)

// Options are all settings of a daemon. Each field but the version is one flag of htcd run.
type Options struct {
	Version string

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
	CallbackStart    bool
	HealthListen     string
	OutputListen     string
	PprofListen      string
	Traces           string
	TLSCert          string
	TLSKey           string

	ImageRegistry string
	TrustCreator  bool
	FinalizerSet  bool
	Binds         []string
	ShipSender    string
	AllowHTCOpts  []string
	Attributes    []string
	AllowImages   []string
	WritableRoot  bool
	AllowSchemes  []string
	MaxQueue      int
	FactoryAbove  int
	MaxOpen       int
	MaxOutput     resource.QuantityValue
	MaxInput      resource.QuantityValue
	KeepFree      resource.QuantityValue
	UploadQuota   resource.QuantityValue
	UploadFiles   int
	HistoryKept   time.Duration
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
	Collector         string
	Schedd            string
	ScheddCommand     string
	AllowPools        []string
	CommandTimeout    time.Duration
	ReconcileSchedule string
	FullCrosscheck    time.Duration
	Feeds             []string
	FeedCA            string
	FeedCert          string
	FeedKey           string
	ScheddCommands    int
	ScheddRate        float64
	Refresh           time.Duration

	ShutdownTimeout time.Duration
	LogLevel        string
	LogFormat       string
}

// Check returns all that flags together, or files that they name, have wrong.
func (o *Options) Check() error {
	var missing error
	if o.CallbackURL == "" {
		missing = errors.New("--callback-url is required: without it no job can report its end")
	}
	return errors.Join(missing, o.CheckParts())
}

// CheckParts is Check for commands that send no jobs.
func (o *Options) CheckParts() error {
	var wrong []error
	if (o.TLSCert == "") != (o.TLSKey == "") {
		wrong = append(wrong, errors.New("--tls-cert and --tls-key go together: give both or neither"))
	}
	if n := len(o.Socket()); n > control.MaxPath {
		wrong = append(
			wrong,
			fmt.Errorf(
				"--control-socket %q, which is in --ticket-dir: a socket's path has at most %d bytes, this one has %d",
				o.Socket(),
				control.MaxPath,
				n,
			),
		)
	}
	if len(o.Feeds) > 0 && (o.FeedCA == "" || o.FeedCert == "" || o.FeedKey == "") {
		wrong = append(
			wrong,
			errors.New("--feed needs --feed-ca, --feed-cert and --feed-key: a feed speaks mutual TLS only"),
		)
	}
	if o.Schedd != "" && o.ScheddCommand != "" {
		wrong = append(wrong, errors.New("--schedd and --schedd-command: give one of them"))
	}
	if len(o.PoolSecrets) > 0 && !o.NamespaceSecrets {
		wrong = append(
			wrong,
			errors.New("--pool-secrets: Secrets of namespaces are read with --namespace-secrets only"),
		)
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

// LedgerFile is the SQLite file.
func (o *Options) LedgerFile() string {
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

// Socket is where the running htcd answers.
func (o *Options) Socket() string {
	if o.ControlSocket != "" {
		return o.ControlSocket
	}
	return filepath.Join(o.TicketDir, "control.sock")
}

func (o *Options) stagingDir() string { return filepath.Join(o.Data, "staging") }

// store is where the output of jobs is kept.
func (o *Options) store() output.Store { return output.Store{Root: filepath.Join(o.Data, "out")} }

// Cluster reads what htcd render needs of Kubernetes.
func (o Options) Cluster() (operator.Cluster, error) {
	d, err := newDaemon(o, zerolog.Nop())
	if err != nil {
		return operator.Cluster{}, err
	}
	return operator.Cluster{Core: d.core, HTC: d.jobs}, nil
}
