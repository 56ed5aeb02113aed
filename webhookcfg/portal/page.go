package portal

import (
	"errors"
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// show fills in what a page shows.
type show func(*visit) error

// page serves the page that show fills in.
func page(show show) func(*visit) error {
	return func(v *visit) error {
		if err := show(v); err != nil {
			return err
		}
		if v.r.Method == http.MethodGet {
			v.takeNotice()
			v.showMissing()
		}
		v.write()
		return nil
	}
}

// send does what a form asks for, and leads to the page that shows its effect. If that fails, it
// shows the form again, with the reason and the fields that the person typed.
func send(v *visit) error {
	form := v.routes[v.Page].form
	err := v.checkClient()
	if err == nil {
		err = form.do(v)
	}
	if err != nil {
		e, ok := errors.AsType[*webhookcfg.Error](err)
		v.IsUnsure = ok && e.Status >= http.StatusInternalServerError && !form.isTest
		return v.again(err, form.again)
	}
	if form.effect == nil {
		v.Done = form.done
		return page(form.again)(v)
	}
	address := form.effect(&v.input)
	v.leaveNotice(v.Page, address)
	return v.redirect(address)
}

// again shows a form again, with the reason. If its page can't be shown, the person gets only the
// reason and the form, and no page with other forms that look alike.
func (v *visit) again(reason error, form show) error {
	v.fail(reason)
	if page(form)(v) != nil {
		return reason
	}
	return nil
}
