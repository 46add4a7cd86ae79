-- Index each table of events by the person who made the change, so that a person's few events are found quickly.
--
-- The index contains only changes by people. Tasks make most changes, and these cost nothing more.

CREATE INDEX audit_apitoken_by_person ON audit_apitokenevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_authenticator_by_person ON audit_authenticatorevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_backbonelink_by_person ON audit_backbonelinkevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_customer_by_person ON audit_customerevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_emailaddress_by_person ON audit_emailaddressevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_hold_by_person ON audit_holdevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_invitation_by_person ON audit_invitationevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_mailoptout_by_person ON audit_mailoptoutevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_membership_by_person ON audit_membershipevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_order_by_person ON audit_orderevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_port_by_person ON audit_portevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_quarantine_by_person ON audit_quarantineevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_reservedvnirange_by_person ON audit_reservedvnirangeevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_router_by_person ON audit_routerevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_routercertificate_by_person ON audit_routercertificateevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_routerenrolment_by_person ON audit_routerenrolmentevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_site_by_person ON audit_siteevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_socialaccount_by_person ON audit_socialaccountevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_user_by_person ON audit_userevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_vll_by_person ON audit_vllevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_vllend_by_person ON audit_vllendevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
CREATE INDEX audit_webhook_by_person ON audit_webhookevent
    ((pgh_context ->> 'username'), pgh_id DESC) WHERE (pgh_context ->> 'username') IS NOT NULL;
