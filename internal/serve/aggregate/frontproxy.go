package aggregate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// The ConfigMap in which the apiserver publishes its front proxy's certificates.
const (
	proxyNamespace = "kube-system"
	proxyName      = "extension-apiserver-authentication"
)

// trust is the content of that ConfigMap.
type trust struct {
	roots *x509.CertPool
	names []string // common names; none: any
	users []string // the headers of a request that may name the user

	uids, groups, extras []string // its uid, its groups, and the beginnings of others
}

// FrontProxy recognises the apiserver. The zero value trusts nobody.
type FrontProxy struct{ trust atomic.Pointer[trust] }

// Run follows the ConfigMap until ctx ends. If it is missing or malformed, nobody is trusted.
func (p *FrontProxy) Run(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(proxyNamespace),
		informers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, proxyName).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.take(object.(*corev1.ConfigMap).Data) },
		UpdateFunc: func(_, object any) { p.take(object.(*corev1.ConfigMap).Data) },
		DeleteFunc: func(any) { p.trust.Store(nil) },
	})
	if err != nil {
		return fmt.Errorf("watch ConfigMap %s/%s: %w", proxyNamespace, proxyName, err)
	}
	informer.RunWithContext(ctx)
	return nil
}

func (p *FrontProxy) take(data map[string]string) {
	t := trust{roots: x509.NewCertPool()}
	if !t.roots.AppendCertsFromPEM([]byte(data["requestheader-client-ca-file"])) {
		p.trust.Store(nil)
		return
	}
	if names := data["requestheader-allowed-names"]; names != "" && json.Unmarshal([]byte(names), &t.names) != nil {
		p.trust.Store(nil)
		return
	}
	if headers := data["requestheader-username-headers"]; headers != "" &&
		json.Unmarshal([]byte(headers), &t.users) != nil {
		p.trust.Store(nil)
		return
	}
	for key, to := range map[string]*[]string{"requestheader-uid-headers": &t.uids, "requestheader-group-headers": &t.groups, "requestheader-extra-headers-prefix": &t.extras} {
		if text := data[key]; text != "" && json.Unmarshal([]byte(text), to) != nil {
			p.trust.Store(nil)
			return
		}
	}
	p.trust.Store(&t)
}

// userInfo is all that the apiserver says about the user.
func (p *FrontProxy) userInfo(header http.Header) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: p.user(header), Extra: map[string]authenticationv1.ExtraValue{}}
	t := p.trust.Load()
	if t == nil {
		return info
	}
	for _, name := range t.uids {
		if info.UID == "" {
			info.UID = header.Get(name)
		}
	}
	for _, name := range t.groups {
		info.Groups = append(info.Groups, header.Values(name)...)
	}
	for _, prefix := range t.extras {
		for name, values := range header {
			if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
				continue
			}
			key := strings.ToLower(name[len(prefix):])
			if plain, err := url.PathUnescape(key); err == nil {
				key = plain
			}
			info.Extra[key] = append(info.Extra[key], values...)
		}
	}
	return info
}

// user is the user that the apiserver names: it sets these headers itself, whatever the client has sent.
func (p *FrontProxy) user(header http.Header) string {
	t := p.trust.Load()
	if t == nil {
		return ""
	}
	for _, name := range t.users {
		if user := header.Get(name); user != "" {
			return user
		}
	}
	return ""
}

// errStranger is all that a stranger learns, if TLS reveals it.
var errStranger = errors.New("the connection does not come from the apiserver's front proxy")

// verify is tls.Config.VerifyConnection.
func (p *FrontProxy) verify(state tls.ConnectionState) error {
	t := p.trust.Load()
	if t == nil || len(state.PeerCertificates) == 0 {
		return errStranger
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	leaf := state.PeerCertificates[0]
	_, err := leaf.Verify(
		x509.VerifyOptions{
			Roots:         t.roots,
			Intermediates: between,
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
	)
	if err != nil || len(t.names) > 0 && !slices.Contains(t.names, leaf.Subject.CommonName) {
		return errStranger
	}
	return nil
}
