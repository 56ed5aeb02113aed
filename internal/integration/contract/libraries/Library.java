import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * Verifies and signs with the reference library of Standard Webhooks. Each line of input has
 * a command, a secret, an id, a timestamp, signatures and the base64 of a payload, separated
 * by tabs. The line of output is valid, invalid or a signature.
 */
public class Library {
    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(respond(line.split("\t", -1)));
        }
    }

    private static String respond(String[] fields) throws Exception {
        var webhook = new Webhook(fields[1]);
        var payload = new String(Base64.getDecoder().decode(fields[5]), StandardCharsets.UTF_8);
        if (fields[0].equals("sign")) {
            return webhook.sign(fields[2], Long.parseLong(fields[3]), payload);
        }
        try {
            webhook.verify(payload, Map.of(
                "webhook-id", List.of(fields[2]),
                "webhook-timestamp", List.of(fields[3]),
                "webhook-signature", List.of(fields[4])));
            return "valid";
        } catch (WebhookVerificationException refused) {
            return "invalid";
        }
    }
}
