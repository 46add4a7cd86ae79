package report

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAfterReconnectNoRequestReusesABusyConnection(t *testing.T) {
	busy, goOn := make(chan string), make(chan struct{})
	handshakes, mayShake := make(chan struct{}, 2), make(chan struct{}, 2)
	portal := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/agent/v1/observed" {
			busy <- r.RemoteAddr
			<-goOn
		}
		fmt.Fprintf(w, "%q", r.RemoteAddr)
	}))
	portal.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		handshakes <- struct{}{}
		<-mayShake
		return nil, nil
	}}
	portal.StartTLS()
	defer portal.Close()
	client := NewClient(portal.URL, portal.Client().Transport.(*http.Transport).TLSClientConfig)
	post := func(kind string) (answer chan string) {
		answer = make(chan string, 1)
		go func() {
			var from string
			if err := client.Post(t.Context(), kind, nil, &from); err != nil {
				t.Error(err)
			}
			answer <- from
		}()
		return answer
	}

	mayShake <- struct{}{}
	reported := post("observed")
	old := <-busy
	<-handshakes
	client.Reconnect()
	requested := post("certificate")
	<-handshakes // The request starts a new connection after the old one became idle.
	close(goOn)
	<-reported
	mayShake <- struct{}{}
	if from := <-requested; from == old {
		t.Error("the certificate is requested over an old connection")
	}
}
