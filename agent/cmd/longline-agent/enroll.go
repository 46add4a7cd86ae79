package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/enroll"
)

// maxToken limits the size of a token, in bytes. The portal's tokens are shorter.
const maxToken = 4096

func runEnroll(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	portal := flags.String("portal", "", "")
	tokenFile := flags.String("token-file", "", "")
	trust := enroll.Trust{}
	flags.StringVar(&trust.CAFile, "ca", "", "")
	flags.StringVar(&trust.Fingerprint, "ca-fingerprint", "", "")
	replace := flags.Bool("replace", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkEnroll(*portal, *tokenFile, trust); err != nil {
		return err
	}
	c, err := config.Load(*configPath)
	if err != nil {
		return err
	}
	now := time.Now()
	if current := enroll.Current(c.TLS, c.Router, now); current != nil && !*replace {
		_, err := fmt.Fprintf(stdout, "%s has a certificate until %s; nothing was done (-replace requests another)\n",
			c.Router, current.NotAfter.UTC().Format(time.RFC3339))
		return err
	}
	token, err := readToken(*tokenFile)
	if err != nil {
		return err
	}
	certificate, err := enroll.Enroll(ctx, enroll.Options{
		Router: c.Router, Files: c.TLS, Portal: *portal, Trust: trust, Token: token, Now: now,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is enrolled until %s\n  serial       %x\n  certificate  %s\n  key          %s\n  CA           %s\n",
		c.Router, certificate.NotAfter.UTC().Format(time.RFC3339), certificate.SerialNumber,
		c.TLS.Certificate, c.TLS.Key, c.TLS.CA)
	return err
}

func checkEnroll(portal, tokenFile string, trust enroll.Trust) error {
	if portal == "" || tokenFile == "" {
		return &usageError{"enroll needs -portal URL and -token-file FILE"}
	}
	if u, err := url.Parse(portal); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return &usageError{fmt.Sprintf("-portal: %q is not the https URL of a portal", portal)}
	}
	if trust.CAFile != "" && trust.Fingerprint != "" {
		return &usageError{"-ca and -ca-fingerprint exclude each other"}
	}
	if trust.Fingerprint != "" {
		if _, err := enroll.ParseFingerprint(trust.Fingerprint); err != nil {
			return &usageError{"-ca-fingerprint: " + err.Error()}
		}
	}
	return nil
}

// readToken reads the token from a file. The token is not a command-line argument, because all users can see
// arguments with ps(1).
func readToken(path string) (string, error) {
	text, err := readInput(path, maxToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s contains no token", path)
	}
	return token, nil
}
