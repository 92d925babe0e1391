package site

import (
	"time"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Site holds the administrator's settings for all jobs.
type Site struct {
	backend.Policy
	ImageRegistry    string
	Binds            []string
	CallbackURL      string
	CallbackCA       string // PEM text; empty: the authorities that the node trusts
	CallbackAlso     bool   // they are trusted besides those of CallbackCA
	CallbackDeadline time.Duration
	CallbackStart    bool     // jobs report their start, too
	Traces           bool     // jobs are told which span of a trace they run in
	Sender           string   // path of a binary to send with each job, usually empty
	Program          string   // path of htcd, which goes along with jobs of several nodes
	AllowOptions     []string // submit commands and +Attributes beyond schedd's own list
	Attributes       []string // patterns of further +Attributes
	WritableRoot     bool     // scripts may have script.writableRoot
	AllowImages      []string // of schedd.Description; none: every image
	AllowSchemes     []string // of schedd.Description; none: no URLs
	TrustCreator     bool     // the annotation with an object's creator is protected, see CreatorOf
	MaxQueue         int      // procs of one HTCJob; 0: no limit
	FactoryAbove     int      // an attempt of more jobs is sent as a factory; 0: none is without spec.parallelism
	MaxOpen          int      // open procs of one namespace; 0: no limit
	MaxOutput        int64    // MiB of output per job; 0: no limit
	MaxInput         int64    // bytes of inputs that one HTCJob's procs get together; 0: no limit
	Inputs           inputs.Rules
}

// PoolRules are those of the settings that HTCPools must keep to.
func (s Site) PoolRules() pool.Rules {
	return pool.Rules{
		AllowOptions:  s.AllowOptions,
		Attributes:    s.Attributes,
		AllowImages:   s.AllowImages,
		ImageRegistry: s.ImageRegistry,
		PoolSecrets:   s.PoolSecrets,
	}
}
