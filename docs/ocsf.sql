/* Sessions as OCSF events, for a SIEM: 1007 process activity, 1001 file activity, 4001 network
   activity. A dot in a column's name is a level of the event's JSON object.
   sigwrap query --all --format nl "$(cat ocsf.sql)" */
WITH actions (outcome, action_id, severity_id) AS (
    VALUES ('allowed', 1, 1), ('approved', 1, 1), ('denied', 2, 3),
           ('audited', 3, 1), ('redirected', 4, 2), ('absorbed', 4, 2)
),
about AS MATERIALIZED (SELECT session, host, user, policy, sigwrap FROM sessions),
operations (operation, activity_id) AS (
    VALUES ('create', 1), ('write', 3), ('delete', 4), ('rename', 5)
),
activities AS (
    SELECT 1007 AS class_uid, 1 AS activity_id, session, session || '/' || seq AS uid, time_ns,
           outcome, rule, pid, ppid, command, path, NULL AS exit_code, NULL AS file,
           NULL AS host, NULL AS ip, NULL AS port, NULL AS protocol
    FROM execs
    UNION ALL
    SELECT 1007, 2, session, session || '/' || pid || '/' || ended_ns, ended_ns,
           'audited', NULL, pid, ppid, command, path, exit_code, NULL, NULL, NULL, NULL, NULL
    FROM processes WHERE ended_ns IS NOT NULL
    UNION ALL
    SELECT 1001, coalesce(activity_id, 0), session, session || '/' || seq, time_ns,
           'audited', rule, pid, NULL, who, NULL, NULL, path, NULL, NULL, NULL, NULL
    FROM files LEFT JOIN operations USING (operation)
    UNION ALL
    SELECT 1001, 0, session, session || '/' || seq, time_ns, 'denied',
           json_extract(payload, '$.rule_name'), pid, NULL, json_extract(payload, '$.command'),
           NULL, NULL, json_extract(payload, '$.path'), NULL, NULL, NULL, NULL
    FROM events WHERE type = 'file_refused_likely'
    UNION ALL
    SELECT 4001, CASE direction WHEN 'bind' THEN 7 ELSE 1 END, session, session || '/' || seq,
           time_ns, outcome, rule, pid, NULL, who, NULL, NULL, NULL, destination, address, port,
           protocol
    FROM connections
)
SELECT class_uid, class_uid / 1000 AS category_uid, activity_id,
       class_uid * 100 + activity_id AS type_uid, time_ns / 1000000 AS time,
       action_id, severity_id, activities.uid AS "metadata.uid", '1.2.0' AS "metadata.version",
       'sigwrap' AS "metadata.product.name", about.sigwrap AS "metadata.product.version",
       session AS "metadata.correlation_uid", about.host AS "device.hostname",
       about.user AS "actor.user.name", about.policy AS "policy.name",
       rule AS "firewall_rule.name",
       CASE class_uid WHEN 1007 THEN pid END AS "process.pid",
       CASE class_uid WHEN 1007 THEN activities.command END AS "process.cmd_line",
       path AS "process.file.path", ppid AS "process.parent_process.pid", exit_code,
       CASE WHEN class_uid != 1007 THEN pid END AS "actor.process.pid",
       CASE WHEN class_uid != 1007 THEN activities.command END AS "actor.process.name",
       file AS "file.path", activities.host AS "dst_endpoint.hostname", ip AS "dst_endpoint.ip",
       port AS "dst_endpoint.port", protocol AS "connection_info.protocol_name"
FROM activities JOIN about USING (session) JOIN actions USING (outcome)
ORDER BY time_ns
