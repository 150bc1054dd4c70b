import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * A Kafka broker of one node, and what a test does to its topics.
 *
 * <p>Arguments: the properties of the broker, and the address of a listener without a password. Each line of the input is a
 * command, a JSON object with the member {@code do}; each gets a line as answer, {@code ok} or what went wrong. The end of the
 * input ends the broker.
 */
public class Broker {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TRANSACTION = "test";
    private static Producer<byte[], byte[]> open; // in a transaction

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // log4j and the like
        Properties settings = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(args[0]))) {
            settings.load(reader);
        }
        var formatter = new Formatter()
                .setNodeId(1)
                .setClusterId(Uuid.randomUuid().toString())
                .addDirectory(settings.getProperty("log.dirs"))
                .setReleaseVersion(MetadataVersion.latestProduction())
                .setControllerListenerName("CONTROLLER")
                .setMetadataLogDirectory(Optional.of(settings.getProperty("log.dirs")))
                .setIgnoreFormatted(true)
                .setPrintStream(System.err);
        formatter.run();
        var server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
        server.startup();

        Map<String, Object> client = Map.of("bootstrap.servers", args[1]);
        Map<String, Object> producing = new HashMap<>(client);
        producing.put("key.serializer", ByteArraySerializer.class);
        producing.put("value.serializer", ByteArraySerializer.class);
        producing.put("linger.ms", 5);
        producing.put("max.request.size", 64 << 20);
        Map<String, Object> transactional = new HashMap<>(producing);
        transactional.put("transactional.id", TRANSACTION);
        try (var admin = Admin.create(client);
                var producer = new KafkaProducer<byte[], byte[]>(producing);
                var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            admin.describeCluster().nodes().get();
            answers.println("ok");
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                try {
                    perform(JSON.readTree(line), admin, producer, transactional);
                    answers.println("ok");
                } catch (Exception error) {
                    answers.println(error.toString().replace('\n', ' '));
                }
            }
        }
        server.shutdown();
        Runtime.getRuntime().halt(0);
    }

    private static void perform(
            JsonNode command, Admin admin, Producer<byte[], byte[]> producer, Map<String, Object> transactional)
            throws Exception {
        String topic = command.path("topic").asText();
        switch (command.get("do").asText()) {
            case "create" -> {
                Map<String, String> settings = new HashMap<>();
                command.path("settings").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
                var wanted = new NewTopic(topic, command.path("partitions").asInt(1), (short) 1).configs(settings);
                admin.createTopics(List.of(wanted)).all().get();
            }
            case "delete" -> {
                admin.deleteTopics(List.of(topic)).all().get();
                while (admin.listTopics().names().get().contains(topic)) {
                    Thread.sleep(20);
                }
            }
            case "grow" -> admin.createPartitions(
                            Map.of(topic, NewPartitions.increaseTo(command.get("partitions").asInt())))
                    .all()
                    .get();
            case "delete_records" -> admin.deleteRecords(Map.of(
                            new TopicPartition(topic, command.path("partition").asInt()),
                            RecordsToDelete.beforeOffset(command.get("before").asLong())))
                    .all()
                    .get();
            case "produce" -> send(command, producer);
            case "begin" -> {
                open = new KafkaProducer<>(transactional);
                open.initTransactions();
                open.beginTransaction();
                send(command, open);
                open.flush();
            }
            case "commit" -> {
                open.commitTransaction();
                open.close();
                waitForMarks(admin);
            }
            case "transaction" -> {
                try (var one = new KafkaProducer<byte[], byte[]>(transactional)) {
                    one.initTransactions();
                    one.beginTransaction();
                    send(command, one);
                    one.flush();
                    if (command.path("abort").asBoolean()) {
                        one.abortTransaction();
                    } else {
                        one.commitTransaction();
                    }
                }
                waitForMarks(admin);
            }
            default -> throw new IllegalArgumentException("no such command: " + command);
        }
    }

    /** Waits until the marks of the ended transaction stand in its topics: the broker writes them after it has answered. */
    private static void waitForMarks(Admin admin) throws Exception {
        var ended = Set.of(TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT);
        while (!ended.contains(admin.describeTransactions(List.of(TRANSACTION)).description(TRANSACTION).get().state())) {
            Thread.sleep(5);
        }
    }

    /** Sends the records of the file that the command names, one a line: topic, partition, timestamp, and base64 of key, value, headers. */
    private static void send(JsonNode command, Producer<byte[], byte[]> producer) throws Exception {
        List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
        try (var lines = Files.newBufferedReader(Path.of(command.get("file").asText()))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonNode record = JSON.readTree(line);
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.path("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                Integer partition = record.hasNonNull("partition") ? record.get("partition").asInt() : null;
                Long timestamp = record.hasNonNull("timestamp") ? record.get("timestamp").asLong() : null;
                sent.add(producer.send(new ProducerRecord<>(
                        record.get("topic").asText(), partition, timestamp, bytes(record.get("key")), bytes(record.get("value")), headers)));
            }
        }
        for (var one : sent) {
            one.get();
        }
    }

    private static byte[] bytes(JsonNode base64) {
        return base64 == null || base64.isNull() ? null : Base64.getDecoder().decode(base64.asText());
    }
}
