package v1alpha1

// CredentialKind is what a credential is for a job.
//
// +kubebuilder:validation:Enum=X509Proxy;BearerToken;File;Registry
type CredentialKind string

// The kinds of credentials.
const (
	X509Proxy   CredentialKind = "X509Proxy"   // X509_USER_PROXY is its path
	BearerToken CredentialKind = "BearerToken" // BEARER_TOKEN_FILE is its path
	PlainFile   CredentialKind = "File"        // it is $HTC_CREDENTIALS/NAME
	Registry    CredentialKind = "Registry"    // for artifacts and the image; scripts do not get it
)

// Credential is a file of mode 0600 in the directory $HTC_CREDENTIALS of every job. While the jobs wait and run, the
// file follows the Secret.
type Credential struct {
	// Name is what the file is called.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="a credential's name must be letters, digits and _ . -, and begin with a letter, a digit or _"
	Name string `json:"name"`

	// SecretKeyRef takes it from a Secret of this HTCJob's namespace which has the
	// label htc.cern.ch/jobs=true, at most 64 KiB.
	// +required
	// +kubebuilder:validation:XValidation:rule="!self.key.contains('{')",fieldPath=".key",message="the key of a Secret must be letters, digits and - _ . : it is the same for all jobs"
	SecretKeyRef KeyRef `json:"secretKeyRef"`

	// As says what it is: X509Proxy, of which X509_USER_PROXY is the path;
	// BearerToken, of which BEARER_TOKEN_FILE is the path; another File; or Registry: a
	// .dockerconfigjson with which htcd fetches the artifacts of spec.inputs and the execute
	// nodes fetch script.image, and which the scripts do not get. Transfer plugins get the
	// proxy for all URLs of the HTCJob, and a token for those that name it: wlcg+https://....
	// +required
	As CredentialKind `json:"as"`
}
