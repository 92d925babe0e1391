package trial

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/root"
)

// Config returns the administrator's configuration for the lab's apiserver.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", running.Kubeconfig())
	require.NoError(t, err)
	config.QPS, config.Burst = -1, -1 // tests need no limit
	id, err := running.Identity()
	require.NoError(t, err)
	if id.Node {
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return root.Dial(ctx, id.Init, network, address)
		}
	}
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return config
}

// Namespace creates a namespace that is deleted at the end of the test. The strictest
// Pod Security standard is enforced in it, and jobs there may have Secrets.
func Namespace(t *testing.T) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(Config(t))
	require.NoError(t, err)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "e2e-",
			Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.RbacV1().RoleBindings(namespace.Name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "htcd-job-secrets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "htcd-job-secrets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "htcd"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
		defer cancel()
		require.NoError(t, client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}))
	})
	return namespace.Name
}

// User creates somebody with rights in one namespace, and returns their kubeconfig.
func User(t *testing.T, namespace string) (kubeconfig, token string) {
	t.Helper()
	config := Config(t)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().ServiceAccounts(
		namespace,
	).Create(
		t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "anna"}},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "anna",
		}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "htcjob-user"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "anna", Namespace: namespace}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request, err := client.CoreV1().ServiceAccounts(
		namespace,
	).CreateToken(
		t.Context(),
		"anna",
		&authenticationv1.TokenRequest{},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "anna", Namespace: namespace}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"anna": {Token: request.Status.Token}},
	}, kubeconfig))
	return kubeconfig, request.Status.Token
}
