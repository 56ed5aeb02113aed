package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v5"
)

// framework is a router whose handlers do the same work as the library's. They're written as
// you usually would for that router. A middleware adds the checks that the router lacks.
type framework struct {
	name string
	new  func(*reference) http.Handler
}

var frameworks = []framework{{"chi", newChi}, {"gin", newGin}, {"echo", newEcho}}

// setBody is the body of a set.
type setBody struct {
	EndpointID *string `json:"endpoint_id"`
	WebhookURL string  `json:"webhook_url"`
}

var errRefused = errors.New("bench: invalid request")

// success is the response to a change.
var success = map[string]string{"message": "successful"}

// set and unset do a request's work once the client has signed in.
func (h *reference) set(client string, b setBody) error {
	if !goodURL(b.WebhookURL) || b.EndpointID != nil && !goodID(*b.EndpointID) {
		return errRefused
	}
	entry := hook{url: b.WebhookURL, since: time.Now().Unix()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.EndpointID == nil {
		h.base[client] = entry
		delete(h.overrides, client)
	} else {
		h.override(client, *b.EndpointID, entry)
	}
	return nil
}

func (h *reference) unsetOne(client, id string) error {
	if !goodID(id) {
		return errRefused
	}
	h.unset(client, id)
	return nil
}

func (h *reference) unsetAll(client string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.base, client)
	delete(h.overrides, client)
	return nil
}

// checked adds the checks and guards of the library's handler that frameworks lack:
// deadlines, panics, unclean paths, queries, media types and headers.
func checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				refuse(w, 500, "server_error")
			}
		}()
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), referencePath)
		if !ok || strings.Contains(rest, "//") || strings.Count(rest, "/") > 1 {
			refuse(w, 404, "not_found")
			return
		}
		if r.URL.RawQuery != "" || r.URL.ForceQuery {
			refuse(w, 400, "invalid_request")
			return
		}
		if r.Method == "POST" {
			if r.Header.Get("Content-Type") != "application/json" {
				refuse(w, 415, "unsupported_media_type")
				return
			}
			if http.NewResponseController(w).SetReadDeadline(time.Now().Add(10*time.Second)) != nil {
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// decodeSet decodes a body with encoding/json.
func decodeSet(body io.Reader) (b setBody, err error) {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&b)
	return b, err
}

func newChi(h *reference) http.Handler {
	handle := func(do func(client string, r *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			client, ok := h.signIn(r.Header)
			if !ok {
				http.Error(w, "invalid client", http.StatusUnauthorized)
				return
			}
			if err := do(client, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(success)
		}
	}
	r := chi.NewRouter()
	r.Post(referencePath, handle(func(client string, r *http.Request) error {
		b, err := decodeSet(r.Body)
		if err != nil {
			return err
		}
		return h.set(client, b)
	}))
	r.Delete(referencePath, handle(func(client string, _ *http.Request) error { return h.unsetAll(client) }))
	r.Delete(referencePath+"/{id}", handle(func(client string, r *http.Request) error { return h.unsetOne(client, chi.URLParam(r, "id")) }))
	return checked(r)
}

func newGin(h *reference) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	handle := func(do func(client string, c *gin.Context) error) gin.HandlerFunc {
		return func(c *gin.Context) {
			client, ok := h.signIn(c.Request.Header)
			if !ok {
				c.AbortWithStatus(http.StatusUnauthorized)
				return
			}
			if err := do(client, c); err != nil {
				c.AbortWithStatus(http.StatusBadRequest)
				return
			}
			c.JSON(http.StatusOK, success)
		}
	}
	r := gin.New()
	r.POST(referencePath, handle(func(client string, c *gin.Context) error {
		var b setBody
		if err := c.ShouldBindJSON(&b); err != nil {
			return err
		}
		return h.set(client, b)
	}))
	r.DELETE(referencePath, handle(func(client string, _ *gin.Context) error { return h.unsetAll(client) }))
	r.DELETE(referencePath+"/:id", handle(func(client string, c *gin.Context) error { return h.unsetOne(client, c.Param("id")) }))
	return checked(r)
}

func newEcho(h *reference) http.Handler {
	handle := func(do func(client string, c *echo.Context) error) echo.HandlerFunc {
		return func(c *echo.Context) error {
			client, ok := h.signIn(c.Request().Header)
			if !ok {
				return c.NoContent(http.StatusUnauthorized)
			}
			if err := do(client, c); err != nil {
				return c.NoContent(http.StatusBadRequest)
			}
			return c.JSON(http.StatusOK, success)
		}
	}
	r := echo.New()
	r.POST(referencePath, handle(func(client string, c *echo.Context) error {
		var b setBody
		if err := c.Bind(&b); err != nil {
			return err
		}
		return h.set(client, b)
	}))
	r.DELETE(referencePath, handle(func(client string, _ *echo.Context) error { return h.unsetAll(client) }))
	r.DELETE(referencePath+"/:id", handle(func(client string, c *echo.Context) error { return h.unsetOne(client, c.Param("id")) }))
	return checked(r)
}
